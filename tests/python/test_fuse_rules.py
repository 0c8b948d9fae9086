"""The rules of deferred work, one by one: nobody sees that it waits, and it waits not for ever."""

import copy
import ctypes
import gc
import io
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from deferral import deferred  # noqa: F401

import tessera as torch
from tessera import _C, fuse


def pending():
    return fuse.stats()["pending"]


def reasons():
    return {name: n for name, n in fuse.stats()["reasons"].items() if n}


def ready(*args, **kwargs):
    """A tensor of ones that is there."""
    x = torch.ones(*args, **kwargs)
    fuse.run()
    return x


# --- storage whose address has left us ---


def as_numpy(x):
    return x.numpy()


def as_array(x):
    return np.asarray(x)


def as_dlpack(x):
    return np.from_dlpack(x)


def as_address(x):
    return np.ctypeslib.as_array((ctypes.c_float * x.numel()).from_address(x.data_ptr()))


def as_storage_address(x):
    address = x.untyped_storage().data_ptr()
    return np.ctypeslib.as_array((ctypes.c_float * x.numel()).from_address(address))


WAYS_OUT = [as_numpy, as_array, as_dlpack, as_address, as_storage_address]


@pytest.mark.parametrize("out", WAYS_OUT)
def test_an_address_shows_what_was_pending(out):
    x = ready(100) * 3 + 1
    assert pending()
    assert out(x).tolist() == [4.0] * 100


@pytest.mark.parametrize("out", WAYS_OUT)
def test_an_address_runs_pending_readers_too(out):
    x = ready(100)
    y = x + 1
    memory = out(x)
    memory[:] = 50
    assert y.tolist() == [2.0] * 100 and x.tolist() == [50.0] * 100


@pytest.mark.parametrize("out", WAYS_OUT)
def test_what_touches_exposed_memory_runs_when_called(out):
    x = ready(100)
    memory = out(x)
    y = x * 2
    memory[:] = 7
    z = x.view(10, 10)[2:].sum()
    memory[:] = 9
    x.add_(1)
    assert pending() == 0
    assert y.tolist() == [2.0] * 100 and z.item() == 7 * 80
    assert memory.tolist() == [10.0] * 100


def test_memory_from_outside_is_exposed_from_the_start():
    memory = np.ones(100, dtype=np.float32)
    for x in (
        torch.from_numpy(memory),
        torch.from_dlpack(memory),
        torch.frombuffer(memory, dtype=torch.float32),
    ):
        y = x * 2
        assert pending() == 0
        memory[:] = 5
        assert y.tolist() == [2.0] * 100
        memory[:] = 1


def test_a_view_of_exposed_memory_is_exposed(device):
    x = ready(10, 10, device=device)
    view = x[3:].t()
    x.data_ptr()
    view.mul_(2)
    assert pending() == 0 and x.sum().item() == 30 + 140


# --- reads ---


@pytest.mark.parametrize(
    "read",
    [
        lambda y: y.tolist(),
        lambda y: y[0].item(),
        lambda y: float(y[0]),
        lambda y: bool(y[0] > 0),
        lambda y: repr(y),
        lambda y: f"{y[1]:.2f}",
        lambda y: y.cpu(),
        lambda y: list(iter(y)),
        lambda y: torch.equal(y, y),
        lambda y: y.nonzero(),
        lambda y: copy.deepcopy(y).tolist(),
        lambda y: pickle.dumps(y),
        lambda y: torch.save(y, io.BytesIO()),
    ],
)
def test_a_read_sees_the_value(read, device):
    x = ready(8, device=device)
    y = x * 2 + 1
    read(y)
    assert y.tolist() == [3.0] * 8


def test_saved_and_loaded(device):
    x = ready(8, device=device)
    y = x * 2 + 1
    file = io.BytesIO()
    torch.save({"y": y, "view": y[2:4]}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["y"].tolist() == [3.0] * 8 and loaded["view"].tolist() == [3.0] * 2
    assert pickle.loads(pickle.dumps(x + 5)).tolist() == [6.0] * 8


def test_a_read_runs_only_what_it_needs(device):
    x = ready(100, device=device)
    a, b = x + 1, x + 2
    a.tolist()
    assert pending() >= 1
    assert b.tolist() == [3.0] * 100


def test_copies_to_and_from_a_device(accelerator):
    host = ready(100) * 2
    there = host.to(accelerator) + 1
    host.add_(5)
    back = there.cpu()
    there.mul_(10)
    assert back.tolist() == [3.0] * 100 and there.tolist() == [30.0] * 100
    assert host.tolist() == [7.0] * 100


# --- order ---


def test_writes_after_reads(device):
    x = ready(4, 5, device=device)
    y = x * 2
    x[1:3].mul_(10)
    z = x.t() + 1
    x.zero_()
    assert y.sum().item() == 40 and z.sum().item() == 20 + 10 + 100 and x.sum().item() == 0


def test_overlapping_writes_keep_their_order(device):
    x = ready(10, device=device)
    x[:7].fill_(2)
    x[3:].fill_(3)
    x[5:8] += 1
    assert x.tolist() == [2, 2, 2, 3, 3, 4, 4, 4, 3, 3]


@pytest.mark.parametrize(
    "fold", ["sum", "mean", "var", "prod", "amax", "nansum", "softmax", "layer_norm", "cumsum"]
)
@pytest.mark.parametrize("shape", [(5,), (3000,), (3, 700), (40, 3)])
def test_a_write_in_place_then_a_kernel_then_the_tensor_goes(fold, shape, device):
    def program():
        torch.manual_seed(0)
        x = torch.rand(shape, device=device)
        fuse.run()
        x.mul_(2)
        if fold in ("softmax", "cumsum"):
            y = getattr(x, fold)(-1)
        elif fold == "layer_norm":
            y = torch.nn.functional.layer_norm(x, shape[-1:])
        else:
            y = getattr(x, fold)()
        del x
        z = y + 1
        return y.tolist(), z.tolist()

    got = program()
    with fuse.disabled():
        assert program() == got


def test_data_that_is_exchanged(device):
    p = torch.nn.Parameter(torch.ones(10, device=device))
    before = p * 2
    p.data = ready(10, device=device) * 5
    after = p * 2
    p.data.add_(1)
    assert before.tolist() == [2.0] * 10 and after.tolist() == [10.0] * 10
    assert p.tolist() == [6.0] * 10
    x = ready(4, device=device) * 3
    y = x + 1
    x.set_(ready(2, device=device) * 7)
    assert y.tolist() == [4.0] * 4 and x.tolist() == [7.0] * 2
    x.resize_(3)
    assert x[:2].tolist() == [7.0] * 2


def test_out_that_grows(device):
    x = ready(6, device=device)
    out = torch.empty(0, device=device)
    torch.add(x, 1, out=out)
    torch.mul(out, out, out=out)
    assert out.tolist() == [4.0] * 6


# --- errors ---


def test_errors_come_on_their_own_line(device):
    x = ready(3, device=device) * 2
    y = ready(4, device=device) * 2
    with pytest.raises(RuntimeError, match="size of tensor"):
        x + y
    with pytest.raises(RuntimeError):
        x.add_(ready(2, 3, device=device))
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.bitwise_and(x, x)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.complex(x, x).amax()
    with pytest.raises(IndexError):
        x.sum(3)
    assert x.tolist() == [2.0] * 3


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: torch.tensor([1, 2]) // (torch.tensor([1, 1]) - 1),
        lambda: torch.tensor([1, 2]) % (torch.tensor([1, 1]) - 1),
        lambda: torch.nn.functional.binary_cross_entropy(torch.ones(2) * 2, torch.ones(2)),
        lambda: torch.ones(3)[torch.tensor([2]) + 3],
        lambda: torch.bernoulli(torch.ones(3) * 2),
        lambda: torch.linalg.cholesky(torch.ones(2, 2) * -1),
    ],
)
def test_errors_of_the_data_are_not_deferred(wrong):
    with pytest.raises((RuntimeError, IndexError)):
        wrong()


def test_devices_that_differ(accelerator):
    x = ready(3) * 2
    with pytest.raises(RuntimeError, match="device"):
        x + ready(3, device=accelerator)
    assert x.tolist() == [2.0] * 3


# --- memory ---


def test_what_is_pending_counts_as_allocated(accelerator):
    gc.collect()  # what other tests left
    x = ready(1 << 18, device=accelerator)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    y = x * 2
    assert pending() and torch.cuda.memory_allocated() == before + (1 << 20)
    z = y + 1
    del y
    assert pending() and torch.cuda.memory_allocated() == before + (1 << 20)
    del x
    assert torch.cuda.memory_allocated() == before
    assert pending() and z.sum().item() == 3 << 18
    del z
    gc.collect()
    assert torch.cuda.memory_allocated() == before - (1 << 20)


def test_out_of_memory_comes_on_its_own_line(accelerator):
    x = ready(1 << 20, device=accelerator) * 2
    total = torch.cuda.get_device_properties(0).total_memory
    huge = x[0].expand(total // 2)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        huge * 2
    y = x + 1
    assert y[-1].item() == 3 and x[0].item() == 2


def test_a_throw_mid_run_leaves_the_rest_pending(accelerator):
    x = ready(1 << 16, device=accelerator)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    a = x + 1
    b = a[: 1 << 15] * 2
    c = x.view(256, 256).t() * 3
    _C._cuda_fail_after(0, 0, True)
    try:
        with pytest.raises(RuntimeError):
            fuse.run()
            c.sum().item()
    finally:
        _C._cuda_fail_after(0, -1, False)
    assert a[0].item() == 2 and b.sum().item() == 4 << 15 and c.sum().item() == 3 << 16


# --- autograd ---


def test_versions_count_as_if_at_once(device):
    x = ready(4, device=device)
    assert x._version == 0 or x._version == ready(4, device=device)._version
    before = x._version
    x.add_(1)
    view = x[1:]
    view.mul_(2)
    assert x._version == before + 2 == view._version and pending()


def test_saved_values_that_were_overwritten_are_found(device):
    x = ready(4, device=device).requires_grad_()
    y = x * 2
    z = y.exp()
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_saved_values_stay_what_they_were(device):
    x = (ready(4, device=device) * 3).requires_grad_()
    w = ready(4, device=device) * 2
    y = (x * w).tanh()
    del w
    y.sum().backward()
    want = 2 * (1 - np.tanh(6.0) ** 2)
    assert np.allclose(x.grad.tolist(), [want] * 4, rtol=1e-2)


def test_hooks_see_values(device):
    seen = []
    x = ready(4, device=device).requires_grad_()
    x.register_hook(lambda g: seen.append((g * 2).tolist()))
    y = x * 3
    y.register_hook(lambda g: g + 1)
    (y + 1).sum().backward()
    assert seen == [[12.0] * 4] and x.grad.tolist() == [6.0] * 4


def test_hooks_of_saved_values(device):
    packed = []

    def pack(t):
        packed.append(t.detach().clone())
        return (t * 1).cpu()

    x = ready(4, device=device).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t.to(device)):
        y = (x * 3).exp()
    y.sum().backward()
    assert all(torch.isfinite(t).all() for t in packed)
    assert np.allclose(x.grad.tolist(), [3 * np.exp(3.0)] * 4)


def test_a_training_step_is_the_same(device):
    def train():
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.3), torch.nn.Linear(16, 4)
        ).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        losses = []
        for _ in range(5):
            x = torch.randn(6, 8).to(device)
            loss = torch.nn.functional.cross_entropy(model(x), torch.arange(6).to(device) % 4)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        return [loss.item() for loss in losses], [p.tolist() for p in model.parameters()]

    got = train()
    with fuse.disabled():
        assert train() == got


def test_random_numbers_are_drawn_in_the_program_s_order(device):
    def draw():
        torch.manual_seed(3)
        a = torch.rand(50, device=device) * 2
        b = torch.nn.functional.dropout(a + 1, 0.5)
        c = torch.bernoulli(torch.full((50,), 0.5, device=device)) + b
        del a
        d = torch.randn(50, device=device)
        return d.tolist(), c.tolist(), b.tolist(), torch.rand(3).tolist()

    got = draw()
    with fuse.disabled():
        assert draw() == got


# --- threads and processes ---


def test_threads_that_share_tensors(device):
    x = ready(1000, device=device)
    results, threads = [None] * 4, []

    def work(i):
        total = x * 0
        for k in range(50):
            total = total + x * (i + 1)
            if k % 10 == 0:
                total.sum().item()
        results[i] = total

    for i in range(4):
        threads.append(threading.Thread(target=work, args=(i,)))
        threads[-1].start()
    for t in threads:
        t.join()
    assert [r.sum().item() for r in results] == [50000.0 * (i + 1) for i in range(4)]


def fork_and_wait(code=""):
    """In a fresh process: which lock was registered first depends on what ran before."""
    program = f"""
import faulthandler, os, sys
faulthandler.dump_traceback_later(50, exit=True)
import tessera as torch
torch.fuse.set_mode("on")
torch.fuse.set_tiny(0)
{code}
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.split()


FORK = """
child = os.fork()
if child == 0:
    print(z.sum().item() if z.device.type == "cpu" else 0, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(z.sum().item())
"""


def test_fork_with_pending_work(device):
    code = f"""
x = torch.ones(300000, device="{device}") * 2
y = x + 1
del x
z = y * 3
del y
"""
    assert fork_and_wait(code + FORK)[-1] == "2700000.0"


def test_fork_after_memory_was_given_back(device):
    code = f"""
x = torch.ones(3000000, device="{device}") * 2
x.sum().item()
del x
z = torch.ones(3000000, device="{device}") * 3
"""
    assert fork_and_wait(code + FORK)[-1] == "9000000.0"


def test_a_worker_of_a_loader_inherits_values():
    data = torch.arange(40.0) * 2 + 1
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(data), batch_size=8, num_workers=2
    )
    assert torch.cat([b[0] for b in loader]).tolist() == [2.0 * i + 1 for i in range(40)]


def test_interrupts_are_heard():
    code = """
import os, signal, threading, time
import tessera as torch
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may have it ignored
torch.fuse.set_mode("on")
x = torch.ones(1 << 20)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
total = x
try:
    while True:
        total = torch.sin(total + x) * 0.5
except KeyboardInterrupt:
    value = total.sum().item()
    assert value == value
    print("heard")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.stdout == "heard\n", run.stderr


def test_a_signal_handler_may_use_tensors():
    got = []
    x = ready(100)
    before = signal.signal(signal.SIGUSR1, lambda *unused: got.append((x + 1).sum().item()))
    try:
        y = x * 2
        os.kill(os.getpid(), signal.SIGUSR1)
        z = y + 1
        assert z.tolist() == [3.0] * 100 and got == [200.0]
    finally:
        signal.signal(signal.SIGUSR1, before)


# --- nothing waits for ever, and nothing grows ---

MOST_PENDING = 256


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_a_sum_that_only_grows(device):
    x, total = ready(64, device=device), ready(64, device=device)
    most, before = 0, None
    for i in range(100_000):
        total = total + x
        if i % 1000 == 0:
            most = max(most, pending())
        if i == 10_000:
            before = resident()
    assert most <= MOST_PENDING and resident() - before < 50_000  # KiB
    assert total[0].item() == 100_001


def test_a_metric_that_nobody_reads(device):
    x = ready(10_000, device=device)
    metric = torch.zeros((), device=device)
    before = None
    for i in range(3000):
        metric = metric + (x * i).mean()
        if i == 500:
            fuse.run()
            before = resident()
    assert pending() <= MOST_PENDING and resident() - before < 50_000
    assert metric.item() > 0


def test_results_that_are_forgotten_are_dropped(device):
    x = ready(100_000, device=device)
    before = resident()
    for _ in range(2000):
        x.exp() + 1
    assert pending() <= MOST_PENDING and resident() - before < 100_000
    fuse.run()
    assert fuse.stats()["dropped"] >= 3000


def test_inputs_that_only_pending_work_keeps_are_bounded(device):
    x = torch.zeros(1 << 20, device=device)
    fuse.run()
    before = resident()
    for _ in range(400):  # 1.6 GiB in all
        x = x + ready(1 << 20, device=device)
    assert resident() - before < 900_000
    assert x[5].item() == 400


def test_a_chain_of_thousands(device):
    x = ready(10, device=device)
    for _ in range(5000):
        x = x * 1.0 + 1.0
    assert x.tolist() == [5001.0] * 10


def test_a_chain_with_gradients_goes_away(device):
    x = ready(10, device=device).requires_grad_()
    y = x
    for _ in range(3000):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0] * 10
    del y


def test_structures_that_never_repeat(device):
    generator = np.random.default_rng(0)
    names = ["exp", "neg", "abs", "relu", "tanh", "sigmoid", "sin", "floor", "sign", "cos"]
    x = ready(37, device=device) * 0.5
    for _ in range(60 if device == "cuda" else 300):
        y = x
        for name in generator.choice(names, size=12):
            y = getattr(y, name)()
        z = y + x
        with fuse.disabled():
            y = x
        assert z.shape == y.shape and pending() <= MOST_PENDING
    assert torch.isfinite(z).all()


def test_complex_numbers_that_only_a_dropped_operator_reads(device):
    # Its operator is overwritten before anybody looks, and the group still has the input.
    x = torch.tensor(1.25, device=device)
    z = torch.tensor([5e-324 - 0j, 1e-150 - 2.8j], dtype=torch.complex128, device=device)
    y = torch.logical_xor(x, z)
    y.copy_(x)
    assert y.tolist() == [True, True]
