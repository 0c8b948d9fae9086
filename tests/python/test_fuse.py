"""tessera.fuse: modes, counters, and results that do not depend on them."""

import subprocess
import sys
import threading
import time

import pytest

import tessera as torch
from tessera import fuse


@pytest.fixture(autouse=True)
def restore():
    before = fuse.mode()
    fuse.set_tiny(0)
    yield
    fuse.set_tiny(1024)
    fuse.set_mode(before)


def work(device):
    torch.manual_seed(0)
    x = torch.randn(64, 64).to(device)
    y = x
    for _ in range(5):
        y = torch.exp(y * 0.1) + x
        y.mul_(0.5)
    return y.sum(0).tolist(), y.tolist()


def test_modes_agree_bit_for_bit(device):
    results = []
    for mode in ("off", "on", "check"):
        fuse.set_mode(mode)
        results.append(work(device))
    assert results[0] == results[1] == results[2]


def test_counters(device):
    fuse.set_mode("on")
    fuse.reset_stats()
    x = torch.ones(100, 100, device=device)
    y = x * 2 + 1
    y.tolist()
    stats = fuse.stats()
    assert stats["recorded"] >= 2 and stats["groups"] >= 1
    assert sum(stats["reasons"].values()) >= 1
    assert isinstance(fuse.explain(), str)
    fuse.reset_stats()
    assert fuse.stats()["recorded"] == 0


def test_disabled(device):
    fuse.set_mode("on")
    with fuse.disabled():
        assert fuse.mode() == "off"
        torch.ones(3, device=device) * 2
        assert fuse.stats()["pending"] == 0
    assert fuse.mode() == "on"
    with pytest.raises(ValueError):
        fuse.set_mode("sometimes")


def test_addresses_run_what_is_pending(device):
    fuse.set_mode("on")
    x = torch.ones(1000, device=device) * 3
    assert x.data_ptr()
    assert x[5].item() == 3.0


def test_explain_names_the_line(device):
    fuse.set_mode("on")
    fuse.set_source_lines(True)
    x = torch.ones(100, device=device)
    fuse.run()
    y = x * 2
    z = torch.relu(y)
    z.tolist()
    lines = fuse.explain().splitlines()
    here = __file__.rsplit("/", 1)[-1]
    numbers = [int(line.rsplit(":", 1)[1]) for line in lines if here in line]
    assert len(numbers) == 2 and numbers[1] == numbers[0] + 1
    fuse.set_mode("check")
    (x + 1).mul(2).tolist()
    assert here in fuse.explain()
    fuse.set_mode("on")
    fuse.set_source_lines(False)
    (x + 1).tolist()
    assert here not in fuse.explain()
    fuse.set_source_lines(True)


def test_lines_of_the_package_are_passed_over(device):
    fuse.set_mode("on")
    p = torch.ones(100, device=device, requires_grad=True)
    p.grad = torch.ones(100, device=device)
    optimizer = torch.optim.SGD([p], lr=0.5)
    fuse.run()
    optimizer.step()
    fuse.run()
    here = __file__.rsplit("/", 1)[-1]
    assert here in fuse.explain() and "sgd.py" not in fuse.explain()
    assert p.tolist() == [0.5] * 100


def test_lines_let_code_go(device):
    """Functions made at run time do not stay because an operator was called in them."""
    import weakref

    fuse.set_mode("on")
    made = []
    for i in range(2000):
        scope = {"x": torch.ones(2, device=device)}
        exec(compile(f"def f(): return x + {i}", f"made_{i}.py", "exec"), scope)
        scope["f"]()
        made.append(weakref.ref(scope["f"].__code__))
        fuse.run()
    del scope
    assert sum(ref() is not None for ref in made) < 600


def test_work_of_a_thread_that_ended(device):
    fuse.set_mode("on")
    fuse.run()
    fuse.reset_stats()
    left = []
    thread = threading.Thread(target=lambda: left.append(torch.ones(10, device=device) * 3))
    thread.start()
    thread.join(60)
    # Python's join may return a little before the thread is gone.
    until = time.monotonic() + 30
    while not reasons()["thread exit"] and time.monotonic() < until:
        time.sleep(0.001)
    assert reasons()["thread exit"] == 1 and fuse.stats()["pending"] == 0
    assert left[0].tolist() == [3.0] * 10


def test_pending_work_at_exit():
    code = (
        "import threading, tessera as torch\n"
        "torch.fuse.set_mode('on')\n"
        "kept = torch.ones(10) * 2\n"
        "hold = threading.Event()\n"
        "def work():\n"
        "    y = torch.ones(10) * 3\n"
        "    hold.wait()\n"
        "threading.Thread(target=work, daemon=True).start()\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


def reasons():
    return fuse.stats()["reasons"]


@pytest.fixture
def pending(accelerator):
    """A tensor that is pending, and a check of what made it run."""
    fuse.set_mode("on")
    x = torch.ones(1000, device=accelerator)
    stream, event = torch.cuda.Stream(), torch.cuda.Event()
    event.record()
    fuse.run()
    fuse.reset_stats()
    y = x * 2
    assert fuse.stats()["pending"] == 1

    def expect(reason):
        assert fuse.stats()["pending"] == 0
        assert {name: n for name, n in reasons().items() if n} == {reason: 1}
        assert y.sum().item() == 2000

    expect.tensor, expect.stream, expect.event = y, stream, event
    return expect


def test_synchronize_runs(pending):
    torch.cuda.synchronize()
    pending("sync")


def test_stream_synchronize_runs(pending):
    pending.stream.synchronize()
    pending("sync")


def test_stream_query_runs(pending):
    pending.stream.query()
    pending("event")


def test_wait_stream_runs(pending):
    pending.stream.wait_stream(torch.cuda.current_stream())
    pending("event")


def test_stream_switch_runs(pending):
    with torch.cuda.stream(pending.stream):
        pending("stream")


def test_the_same_stream_is_no_switch(pending):
    with torch.cuda.stream(torch.cuda.current_stream()):
        assert fuse.stats()["pending"] == 1
    torch.cuda.synchronize()
    pending("sync")


def test_device_switch_runs(pending):
    if torch.cuda.device_count() < 2:
        pytest.skip("one device")
    torch.cuda.set_device(0)
    assert fuse.stats()["pending"] == 1
    with torch.cuda.device(1):
        pending("stream")


def test_event_record_runs(pending):
    torch.cuda.Event().record()
    pending("event")


def test_event_wait_runs(pending):
    pending.event.wait()
    pending("event")


def test_event_query_runs(pending):
    assert pending.event.query() in (True, False)
    pending("event")


def test_event_synchronize_runs(pending):
    pending.event.synchronize()
    pending("event")


def test_record_stream_runs(pending):
    pending.tensor.record_stream(pending.stream)
    pending("record stream")


def test_record_stream_of_the_cpu():
    with pytest.raises((RuntimeError, TypeError)):
        torch.ones(3).record_stream(None)


def test_recorded_memory_is_not_reused_early(accelerator):
    """A block used on a second stream is another's only when that stream is done with it."""
    stream = torch.cuda.Stream()
    for _ in range(20):
        x = torch.ones(1 << 16, device=accelerator)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            total = (x * 2).sum()
        x.record_stream(stream)
        del x
        y = torch.zeros(1 << 16, device=accelerator)
        stream.synchronize()
        assert total.item() == 2 << 16 and y.sum().item() == 0
