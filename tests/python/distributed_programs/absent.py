"""absent.py CASE DEVICE FOLDER: two ranks, of which rank 1 leaves out a collective.

Rank 0 checks what the tensors, streams and handles of the failed collective do afterwards, writes
"checked" when all is as expected, and ends the way the case says. Rank 1 stays alive until then.
"""

import datetime
import multiprocessing
import os
import re
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

CASE, DEVICE, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
RANK = int(os.environ.get("RANK") or os.environ["OMPI_COMM_WORLD_RANK"])
LIMIT = 1.5  # seconds: of the groups
BACKEND = os.environ.get("TEST_BACKEND") or ("nccl" if DEVICE == "cuda" else "gloo")
GPU = DEVICE == "cuda"
NCCL = GPU and not torch.cuda.get_device_name().startswith("Virtual")


def limit(seconds=LIMIT):
    return datetime.timedelta(seconds=seconds)


def full(value, *size):
    return torch.full(size or (4,), float(value), device=DEVICE)


def raises(call, pattern):
    try:
        result = call()
    except dist.DistBackendError as error:
        assert re.search(pattern, str(error)), f"{error}\nis not {pattern}"
        return str(error)
    raise AssertionError(f"nothing raised, but {result} is there instead of {pattern}")


def finish(name):
    (FOLDER / name).touch()


def await_file(name):
    for _ in range(600):
        if (FOLDER / name).exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{name} does not come")


def checked():
    print("checked", flush=True)
    finish("checked")


# ---- the table: each call gives a handle and what it writes -------------------------------------


def parts():
    return [full(9, 2), full(9, 2)]


def all_gather_views(g):
    whole = full(9, 3, 4)
    return dist.all_gather([whole[0], whole[2]], full(1), g, True), [whole[0], whole[2]]


def table():
    def of(tensor, call):
        return lambda g: ((outputs := tensor()), call(outputs, g))[::-1]

    x = full
    return {
        "all_reduce": of(
            lambda: [x(9)], lambda o, g: dist.all_reduce(o[0], group=g, async_op=True)
        ),
        "reduce": of(lambda: [x(9)], lambda o, g: dist.reduce(o[0], 0, group=g, async_op=True)),
        "broadcast": of(
            lambda: [x(9)], lambda o, g: dist.broadcast(o[0], 1, group=g, async_op=True)
        ),
        "all_gather": of(parts, lambda o, g: dist.all_gather(o, x(1, 2), g, True)),
        "all_gather views": all_gather_views,
        "all_gather one": of(
            lambda: [x(9, 4)], lambda o, g: dist.all_gather_into_tensor(o[0], x(1, 2), g, True)
        ),
        "gather": of(parts, lambda o, g: dist.gather(x(1, 2), o, 0, g, True)),
        "scatter": of(lambda: [x(9, 2)], lambda o, g: dist.scatter(o[0], None, 1, g, True)),
        "reduce_scatter": of(
            lambda: [x(9, 2)],
            lambda o, g: dist.reduce_scatter_tensor(o[0], x(1, 4), group=g, async_op=True),
        ),
        "all_to_all": of(
            lambda: [x(9)], lambda o, g: dist.all_to_all_single(o[0], x(1), group=g, async_op=True)
        ),
        "recv": of(lambda: [x(9)], lambda o, g: dist.irecv(o[0], 1, group=g)),
        "batch recv": of(
            lambda: [x(9)],
            lambda o, g: dist.batch_isend_irecv([dist.P2POp(dist.irecv, o[0], 1, g)])[0],
        ),
    }


def case_table():
    # Each call has a group: it ends with the failure. All time out together.
    calls = table()
    groups = {name: dist.new_group([0, 1], timeout=limit(60), backend=BACKEND) for name in calls}
    for g in groups.values():  # makes the communicators
        dist.all_reduce(full(1), group=g)
        dist.set_timeout(limit(), g)
    if GPU:
        torch.cuda.synchronize()
    if RANK == 1:
        return await_file("checked")
    other, began = full(3), {}
    flying = {}
    for name, call in calls.items():
        began[name] = time.monotonic()
        work, outputs = call(groups[name])
        # An operator that is queued before the failure: its result is poisoned too.
        derived = [o * 2 + 1 for o in outputs] if NCCL else []
        copies = [o.clone() for o in outputs] if NCCL else []
        flying[name] = (work, outputs, derived + copies)
    assert other.tolist() == [3.0] * 4
    for name, (work, outputs, derived) in flying.items():
        what = name.split()[0] if name != "batch recv" else "recv"
        number = 1 if what == "recv" else 2
        failed = (
            rf"\[rank 0\] {what} .*sequence number {number} of group '{groups[name].group_name}'"
        )
        failed += r".*failed: no answer within 1500 ms"
        for o in outputs:
            raises(o.tolist, failed)
        assert time.monotonic() - began[name] < 10
        for t in outputs + derived:
            for read in (
                t.tolist,
                t.double if not GPU else t.cpu,
                lambda t=t: repr(t),
                lambda t=t: t.sum().item(),
            ):
                raises(read, failed)
            raises(lambda t=t: torch.save(t, FOLDER / "never"), failed)
            raises(lambda t=t: t.cpu().numpy(), failed)
        # An operator after it.
        raises(lambda o=outputs[0]: o + 1, failed)
        raises(lambda o=outputs[0]: (o @ o).tolist(), failed)
        assert work.is_completed() and not work.is_success()
        assert re.search(failed, str(work.exception()))
        raises(work.wait, failed)
        raises(lambda w=work: w.wait(limit(1)), failed)
        raises(lambda g=groups[name]: dist.all_reduce(full(1), group=g), "failed before.*" + failed)
        for o in outputs:  # whole once more
            o.zero_()
            assert (o + 1).tolist() == [1.0] * o.numel()
        assert other.tolist() == [3.0] * 4
    checked()


def case_parts():
    """Other elements of the storage that a collective writes can be used."""
    whole = full(9, 3, 4)
    work = dist.irecv(whole[1], 1) if RANK == 0 else None
    if RANK == 1:
        return await_file("checked")
    assert whole[0].tolist() == [9.0] * 4 and (whole[2] + 1).tolist() == [10.0] * 4
    raises(whole[1].tolist, "recv from rank 1")
    raises(whole.tolist, "recv from rank 1")
    whole[1, :2].fill_(1)
    assert whole[1, :2].tolist() == [1.0, 1.0]
    raises(whole[1].tolist, "recv from rank 1")
    whole[1, 2:].fill_(1)
    assert whole.sum().item() == 8 * 9 + 4
    raises(work.wait, "recv from rank 1")
    checked()


def case_overwritten():
    """Bytes that an operator overwrites in full are valid again, the others stay poisoned."""
    if RANK == 1:
        return await_file("checked")
    rows = full(9, 8, 2, 2)
    dist.all_reduce(rows, async_op=True)
    error = "all_reduce .*sequence number 2 "
    raises(rows.tolist, error)
    host = torch.full((2, 2), 5.0)
    ways = [
        lambda row: row.zero_(),
        lambda row: row.copy_(full(5, 2, 2)),
        lambda row: row.copy_(host),
        lambda row: row.normal_(),
        lambda row: row.uniform_(),
        lambda row: torch.add(full(1, 2, 2), 4, out=row),
        lambda row: torch.mm(full(1, 2, 2), full(1, 2, 2), out=row),
    ]
    for row, way in zip(rows, ways):
        way(row)
        row.tolist()
        (row + 1).tolist()
    # A kernel may leave elements as they are.
    rows[7].index_fill_(0, torch.tensor([0], device=DEVICE), 1.0)
    raises(rows[7].tolist, error)
    raises(lambda row=rows[7]: row.add_(1).tolist(), error)
    raises(rows.tolist, error)
    checked()


def case_error():
    """After an uncaught exception the process ends at once."""
    group = dist.new_group([0, 1], timeout=limit(300), backend=BACKEND)
    if RANK == 1:
        return await_file("ended")
    dist.all_reduce(full(1), async_op=True)
    dist.all_reduce(full(1), group=group, async_op=True) if not GPU else None
    print("checked", flush=True)
    raise ValueError("this rank is broken")


def case_several():
    """Several in flight: those before the one that fails are whole."""
    first, second, third = full(1), full(2), full(3)
    works = [dist.all_reduce(first, async_op=True)]
    if RANK == 1:
        works[0].wait()
        return await_file("checked")
    works += [dist.all_reduce(second, async_op=True), dist.all_reduce(third, async_op=True)]
    works[0].wait()
    assert (first * 2).tolist() == [4.0] * 4
    if NCCL:  # copies that are queued before the failure
        works[1].wait()
        far, pinned = second.to("cuda:1"), torch.empty(4, pin_memory=True)
        pinned.copy_(second, non_blocking=True)
        for read in (far.tolist, pinned.tolist, lambda: pinned + 1, pinned.numpy):
            raises(read, "all_reduce .*sequence number 3 ")
    for t, w in ((second, works[1]), (third, works[2])):
        raises(t.tolist, "all_reduce .*sequence number 3 ")
        raises(w.wait, "all_reduce .*sequence number 3 ")
    assert first.tolist() == [2.0] * 4
    checked()


def case_synchronize():
    """Raises once for each failure."""
    if RANK == 1:
        return await_file("checked")
    event, x, y = torch.cuda.Event(), full(1), full(5)
    dist.all_reduce(x)  # not async_op: the current stream waits
    event.record()
    how = {
        "synchronize": torch.cuda.synchronize,
        "stream": torch.cuda.current_stream().synchronize,
        "event": event.synchronize,
    }[os.environ["TEST_HOW"]]
    raises(how, "all_reduce .*sequence number 2 ")
    for again in (torch.cuda.synchronize, torch.cuda.current_stream().synchronize):
        again()
    event.synchronize()
    assert y.tolist() == [5.0] * 4
    raises(x.tolist, "all_reduce .*sequence number 2 ")
    checked()


def case_wait():
    """With a timeout of its own, wait raises before the group's ends."""
    if RANK == 1:
        return await_file("checked")
    x = full(1)
    work = dist.all_reduce(x, async_op=True)
    raises(lambda: work.wait(limit(0.2)), "not done within 0.2 s")
    os.environ["TORCH_NCCL_BLOCKING_WAIT"] = "1"
    raises(work.wait, "all_reduce .*sequence number 2 ")
    checked()


def case_library():
    """The library reports an error long before the timeout."""
    if RANK == 1:
        cut_connections()
        return await_file("checked")
    x, began = full(1), time.monotonic()
    dist.all_reduce(x)
    raises(x.tolist, "all_reduce .*sequence number 2 .*failed: ")
    raises((x * 2).tolist if not GPU else lambda: x * 2, "all_reduce .*sequence number 2 ")
    assert time.monotonic() - began < 20
    checked()


def cut_connections():
    """Closes the sockets of the emulated NCCL, which have no name in the file system."""
    import socket

    for name in os.listdir("/proc/self/fd"):
        try:
            s = socket.socket(fileno=os.dup(int(name)))
            if s.family == socket.AF_UNIX and s.type == socket.SOCK_STREAM:
                s.shutdown(socket.SHUT_RDWR)
            s.close()
        except OSError:
            pass


def case_ddp():
    """Gradients of a failed reduction do not get into a step, or poison what it writes."""
    model = torch.nn.Linear(3, 2).to(DEVICE)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dist.set_timeout(limit())
    ddp(full(1, 5, 3)).sum().backward()
    optimizer.step()
    before = model.weight.tolist()
    if RANK == 1:
        return await_file("checked")

    def step():
        ddp(full(1, 5, 3)).sum().backward()
        optimizer.step()
        return model.weight.tolist()

    assert before
    raises(step, "all_reduce ")
    checked()


def case_destroy():
    """A group that is destroyed lets its collectives end first, or fail."""
    x = full(1)
    dist.all_reduce(x)
    y = full(1)
    if RANK == 0:
        dist.all_reduce(y)
    else:
        await_file("checked")
        return
    dist.destroy_process_group()
    assert x.tolist() == [2.0] * 4
    raises(y.tolist, "all_reduce .*sequence number 3 ")
    checked()


def case_unread():
    if RANK == 1:
        return await_file("ended")
    dist.all_reduce(full(1), async_op=not NCCL)
    time.sleep(0 if NCCL else LIMIT + 2)
    print("checked", flush=True)


def case_status():
    case_unread()
    if RANK == 0:
        sys.exit(3)


def case_forked():
    """A child that was forked after the failure has nothing to report."""
    if RANK == 1:
        return await_file("checked")
    x = full(1)
    work = dist.all_reduce(x, async_op=True)
    time.sleep(LIMIT + 2)
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    raises(work.wait, "all_reduce .*sequence number 2 ")
    checked()


case_worker = case_unread


def main():
    if GPU:
        torch.cuda.set_device(RANK)
    dist.init_process_group(BACKEND, timeout=limit(60))
    dist.all_reduce(full(1))
    if GPU:
        torch.cuda.synchronize()
    dist.set_timeout(limit(60 if CASE in ("table", "ddp", "library", "error") else LIMIT))
    globals()[f"case_{CASE}"]()


if CASE == "worker":
    worker = multiprocessing.get_context("fork").Process(target=main)
    worker.start()
    worker.join()
    sys.exit(worker.exitcode)
main()
