"""torch.cuda on a virtual or a real device, and without one."""

import os
import subprocess
import sys

import pytest

import tessera as torch


def test_without_a_device():
    code = (
        "import tessera as torch\n"
        "assert not torch.cuda.is_available() and torch.cuda.device_count() == 0\n"
        "try: torch.ones(1).cuda()\n"
        "except RuntimeError as e: print(e)\n"
    )
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    env.pop("TESSERA_VIRTUAL_GPU", None)
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "CUDA is not available" in run.stdout


def test_devices(accelerator):
    assert torch.cuda.is_available() and torch.cuda.device_count() >= 1
    assert torch.cuda.current_device() == 0 and torch.cuda.get_device_name()
    assert torch.cuda.get_device_properties(0).total_memory > 0
    assert torch.ones(1).cuda().device == torch.device("cuda", 0)
    torch.cuda.synchronize()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(1, device="cuda:77")


def test_second_device(accelerator):
    if torch.cuda.device_count() < 2:
        pytest.skip("one device")
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        x = torch.ones(2, device="cuda")
    assert torch.cuda.current_device() == 0 and x.device.index == 1
    assert x.to("cuda:0").tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="cuda:0.*cuda:1|cuda:1.*cuda:0"):
        x + torch.ones(2, device="cuda:0")


def test_memory(accelerator):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1 << 20, device=accelerator)
    assert torch.cuda.memory_allocated() - before >= 4 << 20
    peak = torch.cuda.max_memory_allocated()
    del x
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() == peak >= before + (4 << 20)
    assert torch.cuda.memory_reserved() >= 0
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == before


def test_out_of_memory(accelerator):
    total = torch.cuda.get_device_properties().total_memory
    with pytest.raises(torch.OutOfMemoryError) as info:
        torch.empty(total + 1, dtype=torch.uint8, device=accelerator)
    assert isinstance(info.value, RuntimeError)
    assert torch.ones(4, device=accelerator).sum().item() == 4


def test_streams_and_events(accelerator):
    stream = torch.cuda.Stream()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    default = torch.cuda.current_stream()
    assert default == torch.cuda.default_stream() and stream != default
    x = torch.ones(1000, device=accelerator)
    stream.wait_stream(default)
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        begin.record()
        y = x * 2
        end.record()
    assert torch.cuda.current_stream() == default
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) >= 0
    stream.synchronize()
    assert y.sum().item() == 2000 and stream.query()
    assert "cuda:0" in repr(stream)


def test_numbers_are_the_cpus(accelerator):
    torch.manual_seed(1)
    a = torch.randn(32, 32)
    b = torch.randn(32, 32)
    ours = (a.cuda() @ b.cuda()).cpu()
    assert torch.allclose(ours, a @ b, atol=1e-4)
    assert (a.cuda() + b.cuda()).cpu().tolist() == (a + b).tolist()
