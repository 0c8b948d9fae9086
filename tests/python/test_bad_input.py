"""Wrong arguments give errors: see bad_input.py, which runs in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

import tessera as torch

PROGRAM = Path(__file__).with_name("bad_input.py")
FAMILIES = sorted({op["family"] for op in torch._C.all_ops() if op["samples"]})


@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_arguments_give_errors(family, device):
    if device != "cpu":
        pytest.skip("what is wrong is seen before any device is asked")
    ran = subprocess.run(
        [sys.executable, PROGRAM, family], capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-2000:]
    assert int(ran.stdout.split()[-4]) > 30
