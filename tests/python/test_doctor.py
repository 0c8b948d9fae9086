"""`tessera doctor`, and finding CUDA's libraries that pip installed."""

import os
import subprocess
import sys
from pathlib import Path

import tessera as torch
from tessera import _cuda_libs
from tessera.doctor import _architecture


def doctor(*options, **variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TESSERA_") and k != "DEVICE"}
    if "TESSERA_VIRTUAL_GPU" not in variables:
        env["CUDA_VISIBLE_DEVICES"] = ""
    run = subprocess.run(
        [sys.executable, "-m", "tessera", "doctor", *(options or ["--quick"])],
        env={**env, **variables},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_without_a_device():
    text = doctor()
    assert (
        torch.__version__ in text
        and "instruction set:" in text
        and "BLAS:" in text
        and "oneDNN:" in text
    )
    line = next(line for line in text.splitlines() if line.startswith("accelerator:"))
    assert "none: " in line and len(line) > 30  # and why
    assert "deferral:        on" in text and "kernel cache:" in text
    assert "processes:" in text and "  nccl:" in text


def test_with_settings(tmp_path):
    text = doctor(
        TESSERA_VIRTUAL_GPU="2x1GiB",
        TESSERA_FUSE="check",
        TESSERA_BLAS="none",
        TESSERA_ONEDNN="0",
        TESSERA_CACHE_DIR=str(tmp_path),
    )
    assert "cuda:1:" in text and "Virtual GPU" in text and "libtessera_virtual.so" in text
    assert "deferral:        check" in text and "own matrix products" in text
    assert "own convolutions" in text
    assert f"{tmp_path}, empty" in text


def test_libraries():
    text = doctor()
    for name in "driver NVML NVRTC cuBLASLt cuDNN cuFFT cuSOLVER NCCL".split():
        (line,) = (line for line in text.splitlines() if line.strip().startswith(name + ":"))
        found = line.split(":", 1)[1].strip()
        # Where it is, or how to get it.
        assert os.path.exists(found) or "pip install nvidia-" in found or "driver" in found, line


def test_a_library_in_a_named_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "libmade_up.so.12").touch()
    assert _cuda_libs.locate(("libmade_up.so.13", "libmade_up.so.12")) is None
    monkeypatch.setenv("TESSERA_CUDA_LIBS", f"/nowhere:{tmp_path}")
    found = _cuda_libs.locate(("libmade_up.so.13", "libmade_up.so.12"))
    assert found == str(tmp_path / "libmade_up.so.12")


def test_a_device_too_old_for_the_compiler(monkeypatch):
    monkeypatch.setattr(_cuda_libs, "locate", lambda names: "/somewhere/libnvrtc.so.13")
    ((_, line),) = _architecture(6, 1)
    assert "libnvrtc.so.13 does not compile for it" in line and "tessera[cuda12]" in line
    assert list(_architecture(7, 5)) == list(_architecture(9, 0)) == []
    monkeypatch.setattr(_cuda_libs, "locate", lambda names: "/somewhere/libnvrtc.so.12")
    assert list(_architecture(6, 1)) == []


def test_the_extra_brings_what_is_looked_for():
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text()
    for name, files, purpose, packages in _cuda_libs.LIBRARIES:
        assert files and purpose and name
        for package in packages or ():
            assert f'"{package}' in text, package


def test_visible_devices_are_shown():
    text = doctor(CUDA_VISIBLE_DEVICES="1", TESSERA_VIRTUAL_GPU="2x1GiB")
    assert "CUDA_VISIBLE_DEVICES='1'" in text and "cuda:0:" in text and "cuda:1:" not in text


def test_wheels_of_cuda_are_found(tmp_path, monkeypatch):
    lib = tmp_path / "nvidia" / "cu13" / "lib"
    lib.mkdir(parents=True)
    (tmp_path / "nvidia" / "empty").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setenv("TESSERA_CUDA_LIBS", "/first")
    _cuda_libs.find()
    _cuda_libs.find()
    assert os.environ["TESSERA_CUDA_LIBS"] == f"/first:{lib}"


def test_what_is_measured():
    text = doctor("--", TESSERA_VIRTUAL_GPU="1x1GiB").splitlines()
    start = next(i for i, line in enumerate(text) if line.startswith("measured:"))
    cpu, gpu, transfer = text[start + 1 :]
    assert cpu.startswith("  cpu:") and "GFLOP/s" in cpu
    rate = float(cpu.partition("copy ")[2].partition(" GB/s")[0])
    assert 0.1 < rate < 1000  # each copy was done
    assert gpu.startswith("  cuda:0:") and "copy " in gpu
    assert "pinned" in transfer and "pageable" in transfer and transfer.endswith("GB/s")


def test_the_driver_and_its_fix():
    line = next(line for line in doctor().splitlines() if line.startswith("NVIDIA driver:"))
    assert "none: " in line or "for CUDA up to" in line
