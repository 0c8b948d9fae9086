"""Pieces of tutorials about GPUs run unchanged on two virtual GPUs: see tests/seeds/README.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KIND

import tessera

FOLDER = Path(__file__).resolve().parents[1] / "seeds" / "gpu"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("[0-9]*.py"))


def run(name):
    env = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
    env["PYTHONPATH"] = str(Path(tessera.__file__).parent.parent)
    command = [sys.executable, "-m", "tessera", "run", "--virtual-gpu", "2x2GiB"]
    command += [str(FOLDER / "frame.py"), str(FOLDER / f"{name}.py")]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)


def test_every_piece_has_its_expected_output():
    assert PROGRAMS == sorted(path.stem for path in (FOLDER / "expected").glob("*.txt"))


@pytest.mark.skipif(KIND != "virtual", reason="runs on virtual GPUs")
@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_what_is_expected(name):
    done = run(name)
    assert done.returncode == 0, done.stderr
    assert "is not used" not in done.stderr
    got = done.stdout.rstrip("\n").split("\n")
    want = (FOLDER / "expected" / f"{name}.txt").read_text().rstrip("\n").split("\n")
    if want[-1] == "<more lines>":
        want.pop()
        got = got[: len(want)]
    assert len(got) == len(want), done.stdout
    for line, pattern in zip(got, want):
        # <number> stands for any; a line that ends in ... may go on.
        text = re.escape(pattern.removesuffix("...")).replace("<number>", r"[\d.]+")
        text += ".*" if pattern.endswith("...") else ""
        assert re.fullmatch(text, line), (line, pattern)
