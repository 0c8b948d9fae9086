"""Training programs learn: as PyTorch does, loss by loss, and well enough on real data.

The losses are recorded from PyTorch, see tests/training/README.md; the data are scikit-learn's
digits and this project's documentation.
"""

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KIND

import tessera

ROOT = Path(__file__).resolve().parents[2]
LOSSES = json.loads((ROOT / "tests" / "training" / "losses.json").read_text())
NAMES = sorted(set(LOSSES) - {"torch"})

pytestmark = pytest.mark.skipif(KIND != "cpu", reason="training on the CPU")


def run(program, *arguments, **variables):
    env = {k: v for k, v in os.environ.items() if k != "TESSERA_VIRTUAL_GPU"}
    env |= {"PYTHONPATH": str(Path(tessera.__file__).parent.parent), "CUDA_VISIBLE_DEVICES": ""}
    # They are small: more threads would only wait for each other where other programs run.
    env["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, "-m", "tessera", "run", str(ROOT / program), *arguments]
    return subprocess.run(command, env=env | variables, capture_output=True, text=True, timeout=300)


@functools.cache
def losses(name, dtype, fuse):
    done = run(f"tests/training/{name}.py", dtype, TESSERA_FUSE=fuse)
    assert done.returncode == 0, done.stderr
    return [float(line) for line in done.stdout.splitlines()]


def test_every_program_is_recorded():
    programs = {path.stem for path in (ROOT / "tests" / "training").glob("*_*.py")}
    assert programs == set(NAMES) and len(NAMES) == 9


@pytest.mark.parametrize("fuse", ["0", "1"])
@pytest.mark.parametrize("name", NAMES)
def test_float64_losses_are_pytorchs(name, fuse):
    want = LOSSES[name]["float64"]
    assert len(want) == 50
    assert losses(name, "float64", fuse) == pytest.approx(want, rel=1e-9, abs=0)


@pytest.mark.parametrize("fuse", ["0", "1"])
@pytest.mark.parametrize("name", NAMES)
def test_float32_losses_are_pytorchs(name, fuse):
    got, want = losses(name, "float32", fuse), LOSSES[name]["float32"]
    assert got == pytest.approx(want, rel=1e-3, abs=0)
    # Before rounding could grow.
    assert got[:3] == pytest.approx(want[:3], rel=2e-6, abs=0)


@pytest.mark.parametrize("name", ["digits_mlp", "digits_cnn"])
def test_digits(name):
    pytest.importorskip("sklearn", reason="the digits are scikit-learn's")
    done = run(f"examples/python/{name}.py")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "the progress bar is to be quiet where there is no terminal"
    share = re.findall(r"([\d.]+)%", done.stdout.splitlines()[-1])
    assert float(share[0]) >= 97


@pytest.mark.parametrize("name", ["char_transformer", "char_lstm"])
def test_text(name):
    done = run(f"examples/python/{name}.py")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    means = [float(loss) for loss in re.findall(r"step +\d+: loss ([\d.]+)", done.stdout)]
    assert len(means) >= 4 and all(after < before for before, after in zip(means, means[2:]))
    assert means[-1] < 2.6  # a model that knows only how often each letter is has 3.1
    sample = done.stdout.split("It writes:\n")[1]
    # What it writes depends on the documentation it has read; that it has read is in the loss.
    assert len(sample) > 200 and len(set(sample.split())) >= 3


def test_missing_package_is_named(tmp_path):
    (tmp_path / "sklearn.py").write_text("raise ImportError('not here')\n")
    path = os.pathsep.join([str(tmp_path), str(Path(tessera.__file__).parent.parent)])
    done = run("examples/python/digits_mlp.py", PYTHONPATH=path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("missing: scikit-learn")
