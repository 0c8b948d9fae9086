"""`cmake --install`, and a C++ program that finds what it laid out."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import tessera as torch

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(torch.__file__).parents[2]  # build/python/tessera/__init__.py


def call(*command, **kwargs):
    run = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=600, **kwargs
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_find_package(device, tmp_path):
    if device != "cpu":
        pytest.skip("the same on every device")
    if not (BUILD / "CMakeCache.txt").exists() or not shutil.which("cmake"):
        pytest.skip("not run from a build tree")
    first, prefix = tmp_path / "first", tmp_path / "moved"
    call("cmake", "--install", BUILD, "--prefix", first)
    first.rename(prefix)  # nothing in it may know where it was put
    names = {path.name for path in prefix.rglob("*")}
    assert {"libtessera.so", "libtessera_cpu.so", "tessera.h", "TesseraConfig.cmake"} <= names
    assert not [path for path in prefix.rglob("*") if path.suffix == ".py"]
    for text in prefix.rglob("*.cmake"):
        assert str(ROOT) not in text.read_text() and str(BUILD) not in text.read_text()

    build = tmp_path / "build"
    source = ROOT / "examples" / "cpp" / "cmake_consumer"
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDA")}
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []  # make may not be there
    call("cmake", *generator, "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", env=env)
    call("cmake", "--build", build, env=env)
    out = call(build / "consumer", env={**env, "TESSERA_VIRTUAL_GPU": "1x1GiB"})
    assert out.startswith("tensor([[") and "nan" not in out
