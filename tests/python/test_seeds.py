"""Programs people wrote for PyTorch print under `tessera run` what they print with PyTorch.

With DEVICE=cpu they see no GPU, with DEVICE=virtual one virtual GPU. See tests/seeds/README.md.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KIND

import tessera

SEEDS = Path(__file__).resolve().parents[1] / "seeds"
PROGRAMS = sorted(path.stem for path in SEEDS.glob("[0-9]*.py"))
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def run(name):
    env = {k: v for k, v in os.environ.items() if k != "TESSERA_VIRTUAL_GPU"}
    env["PYTHONPATH"] = str(Path(tessera.__file__).parent.parent)
    gpu = ["--virtual-gpu", "1x8GiB"] if KIND == "virtual" else []
    if not gpu:
        env["CUDA_VISIBLE_DEVICES"] = ""
    program = [str(SEEDS / "seeded.py"), str(SEEDS / f"{name}.py")]
    command = [sys.executable, "-m", "tessera", "run", *gpu, *program]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def expected(name):
    folder = "expected_gpu" if KIND == "virtual" else "expected"
    lines = (SEEDS / folder / f"{name}.txt").read_text().splitlines()
    assert lines[0].startswith("# ")
    return lines[1:]


def assert_same_line(got, want):
    """The words are the same, and so are the numbers, to the digits shown.

    A float32 that is shown with the digits of a double may differ in its last two bits.
    """
    assert NUMBER.sub("<number>", got) == NUMBER.sub("<number>", want)
    for a, b in zip(NUMBER.findall(got), NUMBER.findall(want)):
        if len(b.replace(".", "").lstrip("-0")) <= 7:
            assert a == b, (got, want)
        else:
            assert float(a) == pytest.approx(float(b), rel=2.0**-22), (got, want)


def test_every_program_has_its_expected_output():
    for folder in ("expected", "expected_gpu"):
        assert PROGRAMS == sorted(path.stem for path in (SEEDS / folder).glob("*.txt"))


@pytest.mark.skipif(KIND == "cuda", reason="compares the CPU's numbers, to the last digit")
@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_what_pytorch_prints(name):
    done, want = run(name), expected(name)
    got = done.stdout.splitlines()
    if "Error: " in want[-1]:
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith(want.pop())
    else:
        assert done.returncode == 0, done.stderr
    assert len(got) == len(want), done.stdout
    for a, b in zip(got, want):
        assert_same_line(a, b)
