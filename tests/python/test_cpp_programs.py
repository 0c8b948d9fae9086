"""The tutorials' programs in C++ (examples/cpp) print what the Python originals print."""

import os
import subprocess
from pathlib import Path

import pytest
from conftest import KIND
from test_seeds import PROGRAMS, assert_same_line, expected

import tessera

EXAMPLES = Path(tessera._C.__file__).parents[2] / "examples"
SOURCES = Path(__file__).resolve().parents[2] / "examples" / "cpp"


def cpp_name(program):
    """002_03_train_cnn.py is train_cnn.cpp."""
    return program[len("NNN_MM_") :]


def test_every_program_is_there():
    for program in PROGRAMS:
        if program[:3] in ("002", "003"):
            assert (SOURCES / f"{cpp_name(program)}.cpp").exists(), program


@pytest.mark.skipif(KIND == "cuda", reason="compares the CPU's numbers, to the last digit")
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p[:3] in ("002", "003")])
def test_prints_what_python_prints(program):
    path = EXAMPLES / cpp_name(program)
    if not path.exists():
        pytest.skip(f"{path} is not built")
    env = {k: v for k, v in os.environ.items() if k != "TESSERA_VIRTUAL_GPU"}
    if KIND == "virtual":
        env["TESSERA_VIRTUAL_GPU"] = "1x2GiB"
    else:
        env["CUDA_VISIBLE_DEVICES"] = ""
    done = subprocess.run([path], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    got, want = done.stdout.splitlines(), expected(program)
    assert len(got) == len(want), done.stdout
    for a, b in zip(got, want):
        # Python's error is the last line of a traceback, and begins so.
        assert_same_line(a[: len(b)] if "Error: " in b else a, b)
