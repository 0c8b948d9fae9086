"""Objects of NumPy, and of one rank that cannot be sent: all ranks raise the same."""

import os
import threading

import numpy as np
import torch.distributed as dist


def raises(call, *parts):
    try:
        call()
    except (TypeError, RuntimeError, ValueError) as error:
        assert all(p in str(error) for p in parts), error
        return
    raise AssertionError(f"no error with {parts}")


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
bad = threading.Lock() if rank == 1 else rank

everything = [
    np.float32(1.5),
    np.int64(-3),
    np.bool_(True),
    np.complex64(1 + 2j),
    np.datetime64("2024-02-29"),
    np.arange(6).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(10)[::2],
    np.zeros((0, 3), np.float16),
    np.array(7.0),
    np.array(["a", "bcd"]),
    np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
    np.arange(3, dtype=">i2"),
    {"nested": (np.float64(2), [np.ones(2)]), np.int32(4): {np.int8(5)}},
]


def same(a, b):
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, (np.ndarray, np.generic)):
        fits = type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape
        return fits and bool((a == b).all()) and b.flags.writeable == a.flags.writeable
    return a == b


out = [None] * size
dist.all_gather_object(out, everything)
assert all(same(everything, o) for o in out), out
items = [None, None] if rank else [np.float32(2), np.arange(3)]
dist.broadcast_object_list(items, 0)
assert same([np.float32(2), np.arange(3)], items)
raises(
    lambda: dist.all_gather_object(out, np.array([None]) if rank == 2 else 1),
    *["numpy"] if rank == 2 else ["rank 2 could not send its object: TypeError"],
)

mine = ["a _thread.lock cannot be sent"]
told = mine if rank == 1 else ["rank 1 could not send its object: TypeError: ", *mine]
raises(lambda: dist.all_gather_object(out, bad), *told)
raises(lambda: dist.gather_object(bad, out if rank == 0 else None, 0), *told)
list_of = ["a builtins.list cannot be sent"]
raises(lambda: dist.broadcast_object_list([bad], 1), *list_of)
raises(lambda: dist.scatter_object_list([None], [1, bad, 2] if rank == 1 else None, 1), *told)
# Lists that do not fit are wrong on one rank only too.
short = ["expected a list of 3 objects, got 1" if rank == 0 else "rank 0 could not send"]
raises(lambda: dist.all_gather_object(out[: 1 if rank == 0 else 3], rank), *short)
text = "Argument ``gather_list`` must be specified"
raises(lambda: dist.gather_object(rank, None, 0), text)
raises(
    lambda: dist.scatter_object_list([None], [1] if rank == 0 else None, 0),
    "expected 3 objects to scatter, got 1",
)
if rank == 1:
    raises(lambda: dist.send_object_list([bad], 2), *list_of)
elif rank == 2:
    raises(lambda: dist.recv_object_list([None], 1), "rank 1 could not send", *list_of)
# The group goes on.
dist.all_gather_object(out, rank)
assert out == [0, 1, 2]
os.write(1, b"done\n")
