"""Has every allocation of a Python program's step fail in turn; run by test_allocation_failures.py.

    LD_PRELOAD=build/release/lib/libfailing_malloc.so python allocation_steps.py STEP... [every=K]

STEP is one of those below, or `records`: forward and backward of every operator's first sample.

Operator new and aligned_alloc fail: those of the C++ code. Each must end as a MemoryError (or, for
a kernel's workspace, an OutOfMemoryError) or not show at all; the next step must work and give the
numbers of a run without failures.
"""

import ctypes
import os
import signal
import sys
import tempfile

import tessera as torch
from tessera import nn
from tessera.utils.data import DataLoader, TensorDataset

NEW, ALIGNED = 1, 2
RAISED, ABSORBED, WRONG, UNRELATED, NOTHING_FAILED = 10, 11, 12, 13, 14

malloc = ctypes.CDLL(None)
malloc.failing_malloc_arm.argtypes = [ctypes.c_int64, ctypes.c_int]


def training(model, loss_of):
    start = [p.detach().clone() for p in model.parameters()]

    def step():
        torch.manual_seed(1)
        with torch.no_grad():
            for p, s in zip(model.parameters(), start):
                p.copy_(s)
                p.grad = None
        model.train()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            return [loss.item(), *(p.double().sum().item() for p in model.parameters())]

    return step


def mlp():
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 1))
    return training(model, lambda m: (m(x) - y).square().mean())


def cnn():
    x, y = torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    model.append(nn.Linear(512, 10))
    return training(model, lambda m: nn.functional.cross_entropy(m(x), y))


def transformer():
    x = torch.randn(2, 5, 16)
    model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return training(model, lambda m: m(x).square().mean())


def files():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    path = os.path.join(tempfile.mkdtemp(), "model.pt")

    def step():
        torch.save({"model": model.state_dict(), "epoch": 3}, path)
        loaded = torch.load(path)
        assert loaded["epoch"] == 3
        return [t.double().sum().item() for t in loaded["model"].values()]

    return step


def loader():
    data = TensorDataset(torch.arange(20.0).view(10, 2), torch.arange(10.0))

    def step():
        torch.manual_seed(3)
        batches = DataLoader(data, batch_size=4, shuffle=True)
        return [x.sum().item() + 100 * y.sum().item() for x, y in batches]

    return step


def interchange():
    import numpy

    array = numpy.arange(12.0).reshape(3, 4)

    def step():
        t = torch.from_numpy(array)
        u = torch.from_dlpack(t)
        v = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        text = repr(v)
        index = t[1:, [0, 2]] + t[t > 3].sum()
        named = torch.max(v, 1)
        split = torch.cat(v.split(1)).tolist()
        return [u.sum().item(), len(text), index.sum().item(), named.values.sum().item(), *split[0]]

    return step


def record_steps():
    """Names and steps of all operators that have samples."""
    from samples import Arguments, flat, tensors_in, weights

    for op in torch._C.all_ops():
        if not op["samples"]:
            continue
        by_path = torch._C.ops.get(op["paths"][0])
        function = by_path or getattr(torch.Tensor, op["name"])

        def step(op=op, function=function):
            torch.manual_seed(1)
            given = Arguments(torch, op["samples"][0], "float32", requires_grad=True)
            outs = tensors_in(function(*given.args, **given.kwargs))
            losses = [(t * weights(torch, t)).sum() for t in outs if t.requires_grad]
            if losses:
                torch.autograd.backward(losses)
            grads = [t.grad for t in given.tensors if t.grad is not None]
            return [repr(flat(t)) for t in (*outs, *grads)]

        yield op["name"], step


def records(every):
    """Each operator in a child of its own, which goes through all its allocations."""
    good, total = True, 0
    for name, step in record_steps():
        try:
            for _ in range(2):
                expected = step()
            if expected != step():
                continue  # it returns what is not initialised
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            continue  # float32 is refused
        reader, writer = os.pipe()
        n, more = 1, True
        while more:
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                status = WRONG
                try:
                    while True:
                        os.write(writer, n.to_bytes(4, "little"))
                        status = child(step, expected, n)
                        if status not in (RAISED, ABSORBED):
                            break
                        n += every
                except BaseException as error:
                    print(f"  the next step: {type(error).__name__}: {error}")
                    status = WRONG
                sys.stdout.flush()
                os._exit(status)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            n = int.from_bytes(os.read(reader, 1 << 20)[-4:], "little")
            more = status != NOTHING_FAILED
            if more:
                good = False
                print(f"{name}: allocation {n}: ended with {status}", flush=True)
            n += every
        total += n - 1
        os.close(reader)
        os.close(writer)
    print(f"records: {total} allocations")
    return good


STEPS = {f.__name__: f for f in (mlp, cnn, transformer, files, loader, interchange)}


def child(step, expected, n):
    signal.alarm(20)
    raised = None
    result = None
    malloc.failing_malloc_arm(n, NEW | ALIGNED)
    try:
        result = step()
    except (MemoryError, torch.OutOfMemoryError):
        raised = RAISED
    except BaseException as error:
        malloc.failing_malloc_arm(0, 0)
        print(f"  allocation {n}: {type(error).__name__}: {error}", flush=True)
        raised = UNRELATED
    failed = malloc.failing_malloc_failed()
    malloc.failing_malloc_arm(0, 0)
    if not failed:
        return NOTHING_FAILED
    if raised is None and result != expected:
        print(f"  allocation {n}: the step did not raise and gave other numbers", flush=True)
        return WRONG
    if step() != expected:
        print(f"  allocation {n}: the next step gave other numbers", flush=True)
        return WRONG
    return raised or ABSORBED


def sweep(name, every):
    step = STEPS[name]()
    for _ in range(3):
        expected = step()
    counts = {}
    n = 1
    while True:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            status = WRONG
            try:
                status = child(step, expected, n)
            except BaseException as error:
                print(f"  allocation {n}: the next step: {type(error).__name__}: {error}")
            sys.stdout.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status == NOTHING_FAILED:
            break
        if status < 0:
            print(f"  allocation {n}: {signal.Signals(-status).name}")
            status = "died"
        counts[status] = counts.get(status, 0) + 1
        n += every
    words = {RAISED: "raised", ABSORBED: "absorbed", WRONG: "wrong", UNRELATED: "other errors"}
    print(f"{name}: {n - 1} allocations:", {words.get(k, k): v for k, v in counts.items()})
    return not set(counts) - {RAISED, ABSORBED}


if __name__ == "__main__":
    every = 1
    names = []
    for word in sys.argv[1:]:
        if word.startswith("every="):
            every = int(word[6:])
        else:
            names.append(word)
    names = names or [*STEPS, "records"]
    good = [records(every) if name == "records" else sweep(name, every) for name in names]
    sys.exit(0 if all(good) else 1)
