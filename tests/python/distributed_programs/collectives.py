"""collectives.py BACKEND DEVICE: every collective against expected values, in many dtypes and
sizes. Each rank knows what the others have, so that each computes what it has to get."""

import datetime
import os
import sys

import tessera as torch
import tessera.distributed as dist

backend, device = sys.argv[1], sys.argv[2]
# NCCL knows fewer reductions; on the virtual GPU the name stands for another library.
nccl = backend == "nccl" and not os.environ.get("TESSERA_VIRTUAL_GPU")
if nccl:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(backend, timeout=datetime.timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
FULL = bool(os.environ.get("TESSERA_FULL"))
Op = dist.ReduceOp


def sizes(dtype):
    return [0, 1, 7, 1000, 70_001] if FULL or dtype in (torch.uint8, torch.float32) else [1001]


def values(of_rank, n, dtype):
    """Small whole numbers: sums and products of four are exact in every dtype."""
    base = (torch.arange(n) * (of_rank + 3)) % 3 + of_rank % 2
    if dtype == torch.bool:
        return base % 2 == 1
    if dtype.is_complex:
        return torch.complex(base.to(torch.float64), 1.0 - base.to(torch.float64)).to(dtype)
    return base.to(dtype)


def mine(n, dtype):
    return values(rank, n, dtype).to(device)


def reduced(n, dtype, op, among=None):
    parts = [values(r, n, dtype) for r in (among or range(size))]
    total = parts[0]
    for part in parts[1:]:
        if op in (Op.SUM, Op.AVG):
            total = total | part if dtype == torch.bool else total + part
        elif op == Op.PRODUCT:
            total = total * part
        elif op == Op.MIN:
            total = torch.minimum(total, part)
        elif op == Op.MAX:
            total = torch.maximum(total, part)
        elif op == Op.BAND:
            total = total & part
        elif op == Op.BOR:
            total = total | part
        else:
            total = total ^ part
    return total / len(parts) if op == Op.AVG else total


def expect(what, got, want):
    got = got.cpu()
    assert got.dtype == want.dtype and got.shape == want.shape, (what, got.dtype, want.dtype)
    assert torch.equal(got, want), (what, got, want)


def reductions():
    for dtype in [torch.bool, *INTEGERS, *FLOATS, *COMPLEX]:
        if nccl and dtype == torch.int16:
            continue
        ops = [Op.SUM] if nccl and dtype.is_complex else [Op.SUM, Op.PRODUCT]
        if not dtype.is_complex:
            ops += [Op.MIN, Op.MAX]
        if dtype.is_floating_point:
            ops.append(Op.AVG)
        elif not dtype.is_complex and not nccl:
            ops += [Op.BAND, Op.BOR, Op.BXOR]
        for op in ops:
            for n in sizes(dtype) if op == Op.SUM else [1000]:
                t = mine(n, dtype)
                dist.all_reduce(t, op)
                expect(("all_reduce", dtype, op, n), t, reduced(n, dtype, op))
            n, root = 1000, int(op) % size
            t = mine(n, dtype)
            dist.reduce(t, root, op)
            want = reduced(n, dtype, op) if rank == root else values(rank, n, dtype)
            expect(("reduce", dtype, op), t, want)
            out = torch.empty(5, dtype=dtype, device=device)
            dist.reduce_scatter_tensor(out, mine(5 * size, dtype), op)
            whole = reduced(5 * size, dtype, op)
            expect(("reduce_scatter", dtype, op), out, whole[5 * rank : 5 * rank + 5])
        parts = list(mine(4 * size, dtype).chunk(size))
        out = torch.empty(4, dtype=dtype, device=device)
        dist.reduce_scatter(out, parts)
        expect("reduce_scatter", out, reduced(4 * size, dtype, Op.SUM)[4 * rank : 4 * rank + 4])


def moves():
    for dtype in [torch.bool, *INTEGERS, *FLOATS, *COMPLEX]:
        for n in sizes(dtype):
            t = mine(n, dtype)
            dist.broadcast(t, src=n % size)
            expect(("broadcast", dtype, n), t, values(n % size, n, dtype))
            parts = [torch.empty(n, dtype=dtype, device=device) for _ in range(size)]
            dist.all_gather(parts, mine(n, dtype))
            for r, part in enumerate(parts):
                expect(("all_gather", dtype, n, r), part, values(r, n, dtype))
            all_of_them = torch.empty(n * size, dtype=dtype, device=device)
            dist.all_gather_into_tensor(all_of_them, mine(n, dtype))
            want = torch.cat([values(r, n, dtype) for r in range(size)])
            expect(("all_gather_into_tensor", dtype, n), all_of_them, want)
            root = n % size
            into = None
            if rank == root:
                into = [torch.empty(n, dtype=dtype, device=device) for _ in range(size)]
            dist.gather(mine(n, dtype), into, dst=root)
            for r, part in enumerate(into or []):
                expect(("gather", dtype, n, r), part, values(r, n, dtype))
            out = torch.empty(n, dtype=dtype, device=device)
            lists = [values(r + 1, n, dtype).to(device) for r in range(size)]
            dist.scatter(out, lists if rank == root else None, src=root)
            expect(("scatter", dtype, n), out, values(rank + 1, n, dtype))
            out = torch.empty(n * size, dtype=dtype, device=device)
            dist.all_to_all_single(out, mine(n * size, dtype))
            want = [values(r, n * size, dtype)[n * rank : n * rank + n] for r in range(size)]
            expect(("all_to_all_single", dtype, n), out, torch.cat(want))
    # Rank i sends j + 1 rows to rank j.
    rows = [r + 1 for r in range(size)]
    sent = mine(sum(rows) * 3, torch.float32).reshape(-1, 3)
    out = torch.empty(size * (rank + 1), 3, device=device)
    dist.all_to_all_single(out, sent, [rank + 1] * size, rows)
    first = sum(rows[:rank])
    want = [
        values(r, sum(rows) * 3, torch.float32).reshape(-1, 3)[first : first + rank + 1]
        for r in range(size)
    ]
    expect("all_to_all_single, uneven", out, torch.cat(want))
    outs = [torch.empty(rank + 1, 3, device=device) for _ in range(size)]
    dist.all_to_all(outs, list(sent.split(rows)))
    expect("all_to_all", torch.cat(outs), torch.cat(want))


def messages():
    n = 3000
    after, before = (rank + 1) % size, (rank - 1) % size
    for dtype in [torch.int64, torch.bfloat16]:
        if nccl:
            break  # NCCL has no tags, and two that send to each other wait for ever
        works = [dist.isend(mine(n, dtype), after), dist.isend(mine(5, dtype), after, tag=9)]
        tagged = torch.empty(5, dtype=dtype, device=device)
        assert dist.recv(tagged, before, tag=9) == before
        out = torch.empty(n, dtype=dtype, device=device)
        assert dist.recv(out, before) == before
        for work in works:
            work.wait()
        expect("recv", out, values(before, n, dtype))
        expect("recv with a tag", tagged, values(before, 5, dtype))
    out = torch.empty(n, device=device)
    batch = [
        dist.P2POp(dist.isend, mine(n, torch.float32), after),
        dist.P2POp(dist.irecv, out, before),
    ]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    expect("batch_isend_irecv", out, values(before, n, torch.float32))
    if nccl:
        return
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            t = torch.zeros(1, device=device)
            source = dist.recv(t)
            assert t.item() == source
            seen.add(source)
        assert seen == set(range(1, size))
    else:
        dist.send(torch.full((1,), float(rank), device=device), 0)


def asynchronous():
    tensors = [mine(n, torch.float32) for n in (10, 50_000, 3)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    for work, t, n in zip(works, tensors, (10, 50_000, 3)):
        assert work.wait()
        assert work.is_success() and work.exception() is None
        assert device != "cpu" or work.is_completed()
        expect("async all_reduce", t, reduced(n, torch.float32, Op.SUM))
        assert work.result()[0] is t
    # What is pending runs before the collective reads, and what was recorded after it afterwards.
    t = mine(1000, torch.float32) * 2 + 1
    version = t._version
    kept = t + 1
    dist.all_reduce(t)
    assert t._version > version
    expect("pending work", t + 1, reduced(1000, torch.float32, Op.SUM) * 2 + size + 1)
    expect("a reader before it", kept, values(rank, 1000, torch.float32) * 2 + 2)


def groups():
    evens = dist.new_group(list(range(0, size, 2)))
    odds = dist.new_group(list(range(1, size, 2)))
    own, other = (evens, odds) if rank % 2 == 0 else (odds, evens)
    assert other == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(other) == -1
    members = dist.get_process_group_ranks(own)
    assert members == list(range(rank % 2, size, 2))
    assert dist.get_world_size(own) == len(members) and dist.get_rank(own) == rank // 2
    t = mine(100, torch.float32)
    dist.all_reduce(t, group=own)
    expect("a group's all_reduce", t, reduced(100, torch.float32, Op.SUM, members))
    t = mine(10, torch.float32)
    dist.broadcast(t, src=members[-1], group=own)
    expect("a group's broadcast", t, values(members[-1], 10, torch.float32))
    mine_too, everybody = dist.new_subgroups(2) if size % 2 == 0 else (own, [own])
    assert mine_too in everybody
    dist.barrier(group=mine_too)
    dist.barrier()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))


def objects():
    import collections

    class Own:
        pass

    value = {
        "rank": rank,
        "list": [1.5, None, True, "text" * rank, b"bytes", 2 + 3j, (1, {2, 3})],
        "tensor": torch.arange(rank + 1),
        "order": collections.OrderedDict(b=1, a=2),
    }
    got = [None] * size
    dist.all_gather_object(got, value)
    for r, one in enumerate(got):
        assert one["rank"] == r and one["list"][3] == "text" * r and one["list"][6] == (1, {2, 3})
        assert one["tensor"].tolist() == list(range(r + 1)) and list(one["order"]) == ["b", "a"]
    last = size - 1
    got = [None] * size if rank == last else None
    dist.gather_object(rank * 10, got, dst=last)
    assert rank != last or got == [r * 10 for r in range(size)]
    pair = ["hello", {"a": [1, 2]}] if rank == 2 % size else [None, None]
    dist.broadcast_object_list(pair, src=2 % size)
    assert pair == ["hello", {"a": [1, 2]}]
    out = [None]
    dist.scatter_object_list(out, ["x" * r for r in range(size)] if rank == 0 else None, src=0)
    assert out == ["x" * rank]
    try:
        dist.all_gather_object([None] * size, Own())
    except TypeError as error:
        assert "Own" in str(error) and "without pickle" in str(error)
    else:
        raise AssertionError("an object of an unknown class was sent")
    dist.barrier()


def gradients():
    import tessera.distributed.nn as functional

    weight, weights = rank + 1.0, [r + 1.0 for r in range(size)]
    total, squares = sum(weights), sum(w * w for w in weights)

    def check(what, function, want):
        x = torch.full((3,), weight, device=device, requires_grad=True)
        function(x).backward()
        expect(what, x.grad, torch.full((3,), want))

    def scaled(x):
        return [x * w for w in weights]

    def added(parts):
        return sum(part.sum() * w for part, w in zip(parts, weights))

    check("all_reduce's gradient", lambda x: functional.all_reduce(x).sum() * weight, total)
    check("all_gather's", lambda x: added(functional.all_gather(x)) * weight, weight * total)
    at_root = total if rank == 0 else 0.0
    check("broadcast's", lambda x: functional.broadcast(x, 0).sum() * weight, at_root)
    check("reduce's", lambda x: functional.reduce(x, 0).sum() * weight, 1.0)
    check("gather's", lambda x: added(functional.gather(x, 0)), weight)
    at_root = squares if rank == 0 else 0.0
    check("scatter's", lambda x: functional.scatter(scaled(x), 0).sum() * weight, at_root)
    out = torch.empty(3, device=device)
    check(
        "reduce_scatter's",
        lambda x: functional.reduce_scatter(out, scaled(x)).sum() * weight,
        squares,
    )
    outs = [torch.empty(3, device=device) for _ in range(size)]
    check(
        "all_to_all's",
        lambda x: sum(part.sum() for part in functional.all_to_all(outs, scaled(x))) * weight,
        squares,
    )
    rows = torch.empty(3 * size, device=device)
    check(
        "all_to_all_single's",
        lambda x: functional.all_to_all_single(rows, torch.cat(scaled(x))).sum() * weight,
        squares,
    )


def mistakes():
    def raises(part, call):
        try:
            call()
        except (RuntimeError, ValueError) as error:
            assert part in str(error), error
        else:
            raise AssertionError(f"{part}: nothing was raised")

    raises("called different collectives", lambda: dist.all_reduce(torch.ones(3 + rank % 2)))
    dtype = torch.float64 if rank == 0 else torch.float32
    raises("float64, SUM, sequence number", lambda: dist.all_reduce(torch.ones(3, dtype=dtype)))
    if rank == 0:
        raises("rank 1: barrier", lambda: dist.all_reduce(torch.ones(3)))
    else:
        raises("rank 0: all_reduce of 3", dist.barrier)
    raises("bytes" if rank else "another rank", lambda: uneven([rank + 1] * size))
    dist.barrier()  # the group still works
    raises("must be contiguous", lambda: dist.all_reduce(torch.ones(4, 4).t()))
    raises("twice", lambda: dist.init_process_group("gloo"))


def uneven(split):
    dist.all_to_all_single(torch.empty(sum(split)), torch.ones(size), split, [1] * size)


moves()
reductions()
asynchronous()
objects()
gradients()
if size > 1:
    messages()
    groups()
if device == "cpu" and size > 1:
    mistakes()
assert dist.get_backend() == backend, dist.get_backend()
dist.barrier()
dist.destroy_process_group()
assert not dist.is_initialized()
print(f"rank {rank} of {size} done", os.environ.get("LOCAL_RANK"))
