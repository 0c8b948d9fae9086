"""`tessera doctor`, and finding CUDA's libraries that pip installed."""

import os
import subprocess
import sys

import tessera as torch
from tessera import _cuda_libs


def doctor(**variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TESSERA_") and k != "DEVICE"}
    if "TESSERA_VIRTUAL_GPU" not in variables:
        env["CUDA_VISIBLE_DEVICES"] = ""
    run = subprocess.run(
        [sys.executable, "-m", "tessera", "doctor"],
        env={**env, **variables},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_without_a_device():
    text = doctor()
    assert torch.__version__ in text and "instruction set:" in text and "BLAS:" in text
    line = next(line for line in text.splitlines() if line.startswith("accelerator:"))
    assert "none: " in line and len(line) > 30  # and why
    assert "deferral:        off" in text and "kernel cache:" in text


def test_with_settings(tmp_path):
    text = doctor(
        TESSERA_VIRTUAL_GPU="2x1GiB",
        TESSERA_FUSE="check",
        TESSERA_BLAS="none",
        TESSERA_CACHE_DIR=str(tmp_path),
    )
    assert "cuda:1:" in text and "Virtual GPU" in text and "libtessera_virtual.so" in text
    assert "deferral:        check" in text and "own matrix products" in text
    assert f"{tmp_path}, empty" in text


def test_wheels_of_cuda_are_found(tmp_path, monkeypatch):
    lib = tmp_path / "nvidia" / "cu13" / "lib"
    lib.mkdir(parents=True)
    (tmp_path / "nvidia" / "empty").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setenv("TESSERA_CUDA_LIBS", "/first")
    _cuda_libs.find()
    _cuda_libs.find()
    assert os.environ["TESSERA_CUDA_LIBS"] == f"/first:{lib}"
