"""Nearly valid calls of all operators: see tools/fuzz/calls.py, which forks a process for them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools/fuzz/calls.py"


@pytest.mark.parametrize("which, each", [("--private", 12), ("--public", 3)])
def test_nearly_valid_calls_end_in_a_result_or_an_error(which, each, device):
    if device != "cpu":
        pytest.skip("arguments are checked before a device is involved")
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, TOOL, which, "--guard", "--each", str(each), "--seed", "11"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=env,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert int(ran.stdout.split()[-7]) > 1500
