"""`tessera run --report`: what the devices did, and the one thing to change first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KIND

import tessera
from tessera import _report

BLOCKS = Path(__file__).resolve().parents[1] / "seeds" / "blocks"


def run(code, gpus="2x2GiB"):
    env = {k: v for k, v in os.environ.items() if k not in ("TESSERA_VIRTUAL_GPU", "TESSERA_WATCH")}
    env["PYTHONPATH"] = str(Path(tessera.__file__).parents[1])
    if KIND == "virtual":
        env["TESSERA_VIRTUAL_GPU"] = gpus
    if KIND == "cpu":
        env["CUDA_VISIBLE_DEVICES"] = ""
    command = [sys.executable, "-m", "tessera", "run", "--report", *code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    lines = done.stderr.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("---- tessera"))
    found = {}
    for line in lines[start:]:
        found.setdefault(line[:22].strip(), line[22:].strip())  # of devices, the first
    return done, found, lines[start:]


def share(text):
    return float(text.partition("%")[0])


def test_a_program_that_left_everything_on_the_cpu():
    done, found, _ = run([str(BLOCKS / "003_01_cpu_only.py")])
    assert done.returncode == 0 and "Epoch: 4" in done.stdout
    assert found["Is it using the GPU?"].startswith("no: ")
    if KIND == "cpu":
        assert "there is none" in found["Is it using the GPU?"]
    else:
        assert "no kernel ran on it" in found["Is it using the GPU?"]
        assert "move model and data to the GPU" in found["Change first:"]
        assert "cuda:0" not in found


def test_a_program_that_uses_the_gpu(accelerator):
    code = """
import torch
x = torch.randn(512, 512).to('cuda')
pinned = torch.ones(1000, 1000).pin_memory()
for _ in range(400):
    x = torch.tanh(x @ x)
    x.sum().item() if _ % 100 == 0 else None
z = pinned.to('cuda', non_blocking=True)
torch.cuda.synchronize()
w = z.to('cuda:1') if torch.cuda.device_count() > 1 else None
"""
    done, found, lines = run(["-c", code])
    assert done.returncode == 0, done.stderr
    assert found["Is it using the GPU?"].startswith("yes: ")
    assert "pinned" in found["to the GPU"] and "4.0 MB pinned" in found["to the GPU"]
    assert "1.0 MB pageable" in found["to the GPU"]
    assert found["peak memory"].partition(" of ")[0].endswith("MB")
    four = ("GPU busy", "waiting for data", "launch-bound", "nothing for the GPU")
    assert sum(share(found[name]) for name in four) == pytest.approx(100, abs=0.3)
    if KIND == "virtual":
        assert share(found["GPU busy"]) > 20  # 400 products of 0.27 GFLOP each
        assert "to other GPUs" in found
    assert len(lines) <= 30  # one screen


def test_waiting_for_data(accelerator):
    code = """
import time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 40
    def __getitem__(self, i):
        time.sleep(0.05)
        return torch.ones(8)
for x in torch.utils.data.DataLoader(Slow(), batch_size=2):
    x.cuda().sum().item()
"""
    _, found, lines = run(["-c", code])
    seconds = float(lines[0].split(" in ")[1].split(" s ")[0])  # of which a busy host starts longer
    assert share(found["waiting for data"]) / 100 * seconds > 1.6  # the samples alone sleep for 2 s
    assert "DataLoader(num_workers=" in found["Change first:"]


def test_a_program_that_fails_is_reported_too():
    done, found, _ = run(["-c", "import torch; torch.ones(2) + 1; raise SystemExit(3)"])
    assert done.returncode == 3 and "cpu" in found


def facts(**changes):
    copy = {"copies": 10, "bytes": 10**8, "pageable_copies": 0, "pageable_bytes": 0, "seconds": 0.0}
    device = {
        "launches": 1000, "graphs": 0, "to_device": dict(copy), "to_host": dict(copy, copies=1),
        "synchronized": 2, "peak": 10, "total": 100,
    }  # fmt: skip
    device.update(changes.pop("device", {}))
    base = {
        "available": 1, "used": True, "why": "", "seconds": 10.0, "busy": 10.0, "loading": 0.0,
        "launching": 0.0, "idle": 90.0, "loading_at_all": 0.0, "devices": [device],
    }  # fmt: skip
    return {**base, **changes}


def test_what_is_advised():
    assert "--profile" in _report.advice(facts())
    assert "larger batch" in _report.advice(facts(launching=60.0, idle=10.0))
    assert "num_workers" in _report.advice(facts(loading=60.0, idle=10.0))
    slow = {"copies": 9, "bytes": 10**9, "pageable_bytes": 10**9, "seconds": 5.0}
    assert "pin_memory" in _report.advice(facts(idle=0.0, device={"to_device": slow}))
    assert ".item()" in _report.advice(facts(launching=60.0, idle=0, device={"synchronized": 900}))
    assert "autocast" in _report.advice(facts(busy=95.0, idle=5.0))
    assert "too short" in _report.advice(facts(seconds=0.1))
