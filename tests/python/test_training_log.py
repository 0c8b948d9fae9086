"""Training runs from a seed: the log is PyTorch's, line by line."""

import json
from pathlib import Path

import pytest
from training import RUNS

import tessera as torch
from tessera.utils import data

RECORDED = json.loads((Path(__file__).parent / "data" / "training.json").read_text())


@pytest.mark.parametrize("name", RUNS)
def test_log(name):
    got = RUNS[name](torch, data)
    # In float32: rounding differs, and training makes a little more of it with every step.
    assert got == pytest.approx(RECORDED[name], rel=2e-5, abs=1e-7)
