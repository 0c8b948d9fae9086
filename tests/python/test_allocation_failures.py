"""Memory that runs out is an exception, wherever it runs out, and the next step works.

tests/allocation has each allocation of a step fail in turn. Here: a training step and a convolution
step, whole. `ALLOCATION_STEPS=all` runs every step, in C++ and in Python.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KIND

import tessera

BUILD = Path(tessera._C.__file__).parents[2]
PROGRAM = BUILD / "bin" / "allocation_failures"
LIBRARY = BUILD / "lib" / "libfailing_malloc.so"
ALL = os.environ.get("ALLOCATION_STEPS") == "all"
LIMIT = 3600 if ALL else 300

pytestmark = [
    pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built"),
    pytest.mark.skipif(KIND == "cuda", reason="the steps are those of the CPU and the virtual GPU"),
]


def run(command, **env):
    env = {**os.environ, "TESSERA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **env}
    if KIND == "cpu":
        env.pop("TESSERA_VIRTUAL_GPU", None)
        env["CUDA_VISIBLE_DEVICES"] = ""
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=LIMIT)
    print(done.stdout[-3000:])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


def test_cpp_steps():
    """A step in C++: no allocation that fails ends the process or leaves wrong numbers behind."""
    steps = [] if ALL else ["training", "convolution"]
    # Workers do not exist in a forked child: all in one process there.
    options = ["--sequential"] if KIND == "virtual" else []
    text = run([PROGRAM, *options, *steps])
    for step in steps:
        line = next(x for x in text.splitlines() if x.startswith(f"{step}: "))
        assert int(line.split()[1]) > 200, line  # it did fail allocations


@pytest.mark.skipif(KIND != "cpu", reason="forks")
def test_python_steps():
    script = Path(__file__).with_name("allocation_steps.py")
    steps = [] if ALL else ["mlp", "cnn", "every=2"]
    run([sys.executable, script, *steps], LD_PRELOAD=str(LIBRARY))
