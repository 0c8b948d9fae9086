"""`tessera top`, and what processes show of their virtual GPUs."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from conftest import KIND

import tessera as torch
from tessera import _top as top

PACKAGES = str(Path(torch.__file__).parents[1])
FOLDER = tempfile.TemporaryDirectory()  # others' programs are not seen
WORK = """
import torch, time
x = torch.randn(256, 256, device='cuda')
keep = torch.zeros(64 << 20, dtype=torch.uint8, device='cuda')
print('ready', flush=True)
while True:
    for _ in range(50):
        x = torch.tanh(x @ x)
    torch.cuda.synchronize()
"""


def environment(gpus):
    env = {k: v for k, v in os.environ.items() if k != "TESSERA_VIRTUAL_GPU"}
    if KIND != "cuda":
        env["CUDA_VISIBLE_DEVICES"] = ""
    if gpus:
        env.pop("CUDA_VISIBLE_DEVICES", None)
        env["TESSERA_VIRTUAL_GPU"] = gpus
    return {**env, "PYTHONPATH": PACKAGES, "TESSERA_TOP_DIR": FOLDER.name}


def once(gpus=None):
    command = [sys.executable, "-m", "tessera", "top", "--once"]
    return subprocess.run(command, env=environment(gpus), capture_output=True, text=True)


def test_idle_virtual_gpus():
    done = once("3x1GiB")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len({len(line) for line in lines[1:]}) == 1  # a frame
    assert done.stdout.count("Virtual GPU") >= 3 and "1024MiB" in done.stdout
    for word in "Fan Temp Perf Pwr:Usage/Cap Memory-Usage GPU-Util Clocks Processes:".split():
        assert word in done.stdout


def test_a_process_that_works():
    command = [sys.executable, "-m", "tessera", "run", "-c", WORK]
    worker = subprocess.Popen(command, env=environment("1x1GiB"), stdout=subprocess.PIPE, text=True)
    try:
        assert worker.stdout.readline() == "ready\n"
        time.sleep(0.5)
        text = once().stdout  # it has no GPU itself
        (line,) = (row for row in text.splitlines() if f" {worker.pid} " in row)
        assert "python" in line or "tessera" in line
        busy = int(line.split("%")[0].split()[-1])
        memory = int(line.split("%")[1].split("MiB")[0])
        assert busy > 30 and 64 <= memory < 200
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    text = once("1x1GiB").stdout
    assert f" {worker.pid} " not in text  # what it left is cleared away


def test_what_nvml_tells(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    source = Path(__file__).resolve().parent / "data" / "nvml_stand_in.c"
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    env = environment(None)
    env["LD_LIBRARY_PATH"] = f"{tmp_path}:{env.get('LD_LIBRARY_PATH', '')}"
    command = [sys.executable, "-m", "tessera", "top", "--once"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if "without its cuda backend" in done.stdout:
        pytest.skip("NVML is the CUDA backend's")
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout
    assert "Driver Version: 570.86.15   CUDA Version: 12.8" in text
    a, b = (text.index(f"GPU of tests {name}") for name in "AB")
    first, second = text[a:b], text[b : text.index("Processes:")]
    assert "00000000:01:00.0" in first and "1468 /  3004 MHz" in first
    assert "35%   40C   P0" in first and "17W /    19W" in first
    assert "340MiB /   2048MiB" in first and "97%" in first
    assert "N/A   26C   P8" in second and "0MiB /   2048MiB" in second
    rows = text[text.index("Processes:") :].splitlines()[3:5]
    assert rows[0].split()[1:3] == ["0", "1"] and "336MiB" in rows[0]
    assert rows[1].split()[1:3] == ["0", "2"] and rows[1].count("N/A") == 2


def test_what_is_not_known_says_so():
    gpu = {
        "name": "Some GPU", "bus": "00000000:01:00.0", "is_virtual": False, "busy": 37,
        "memory_used": 340 << 20, "memory_total": 2048 << 20, "power_limit_mw": 19000,
        "memory_busy": 5, "temperature": 40, "power_mw": -1, "fan": 35, "clock_mhz": 1468,
        "memory_clock_mhz": 3004, "performance_state": 0, "processes": [(os.getpid(), -1, -1)],
    }  # fmt: skip
    driver = {"driver": "570.86.15", "cuda": "12.8", "why": ""}
    lines = list(top.screen([gpu], driver, {0: [0, 50, 100]}))
    text = "\n".join(lines)
    assert "Driver Version: 570.86.15   CUDA Version: 12.8" in text
    assert "35%   40C   P0" in text and "N/A /    19W" in text and "340MiB /   2048MiB" in text
    assert "37%" in text and "▄█" in text and "1468 /  3004 MHz" in text
    assert str(os.getpid()) in text and len({len(line) for line in lines[1:]}) == 1


def test_utilization(accelerator):
    x = torch.randn(512, 512, device="cuda")
    torch.cuda.synchronize()
    if KIND == "virtual":
        assert torch.cuda.utilization() <= 20
        seen = 0
        for _ in range(30):  # the share of the last second, on a machine that may be busy
            for _ in range(100):
                x = torch.tanh(x @ x)
            torch.fuse.run()
            seen = max(seen, torch.cuda.utilization())
            if seen > 50:
                break
        assert seen > 50
        torch.cuda.synchronize()
