"""Runs a program from seed 0: seeded.py PROGRAM. Works with PyTorch as with Tessera."""

import runpy
import sys

import torch

torch.manual_seed(0)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
