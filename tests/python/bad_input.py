"""Calls operators with arguments that are wrong one at a time, and watches what happens.

python bad_input.py FAMILY...    prints a line for each thing that should not be, then a count

Whatever is wrong, the answer is a result or an error of one of the kinds that PyTorch raises: no
crash, no other exception, and what an in-place form refused to change is unchanged. The last line
of standard error names the call under way, for when the process does not survive it.
"""

import faulthandler
import resource
import signal
import sys

from samples import Arguments

import tessera as torch

# SystemError is none of them: that is what Python makes of a broken extension.
ERRORS = (RuntimeError, TypeError, ValueError, IndexError, MemoryError, OverflowError)
NUMBERS = [0, -1, 1, 1000, -1000, 2**31, 2**62, -(2**63), 2**64, 0.5, float("nan"), float("inf")]
OTHERS = [
    None,
    "x",
    True,
    2j,
    [],
    [0],
    [-1, 2**62],
    (1, 1, 1, 1, 1, 1),
    object(),
    {},
    torch.float16,
]
BUDGET = 3 << 30  # bytes of memory: what asks for more is told so


def tensors():
    yield torch.zeros(0)
    yield torch.zeros(())
    yield torch.zeros(3, 0, 2)
    yield torch.ones(7, 5)
    yield torch.ones(1, 1, 1, 1, 1, 1, 1)
    yield torch.ones(1).expand(4, 4)
    yield torch.full((3, 4), float("nan"))
    yield torch.full((3, 4), 2**62)
    yield torch.full((4,), -1)
    yield torch.full((4, 4), -(2**63))
    yield torch.zeros(3, 4, dtype=torch.bool)
    yield torch.zeros(3, 4, dtype=torch.int8)
    yield torch.zeros(3, 4, dtype=torch.float16)
    yield torch.zeros(3, 4, dtype=torch.complex64)
    yield torch.zeros(3, 4, device="meta")


def variants(name, args, kwargs):
    """The arguments with one of them exchanged for something else, or one too many, or too few."""
    wrong = [*NUMBERS, *OTHERS, *tensors()]
    if "polynomial" in name:  # a recurrence over the degree, PyTorch's too: long, not wrong
        wrong = [w for w in wrong if not isinstance(w, (int, torch.Tensor)) or w is True]
    for i in range(len(args)):
        for value in wrong:
            yield [*args[:i], value, *args[i + 1 :]], kwargs
    for name in kwargs:
        for value in wrong:
            yield args, {**kwargs, name: value}
    yield args[:-1], kwargs
    yield [*args, object()], kwargs
    yield args, {**kwargs, "no_such_argument": 1}


class TooLong(Exception):
    pass


def give_up(signum, frame):
    raise TooLong


def check(where, function, args, kwargs):
    """A sentence on what is wrong, or None; check.refused is the error that was raised."""
    print(where, file=sys.stderr)
    check.refused = None
    signal.alarm(20)
    try:
        function(*args, **kwargs)
    except ERRORS as error:
        check.refused = error
        if "internal" in str(error).lower():
            return f"{where}: {error!r}"
    except TooLong:
        return f"{where}: takes more than 20 s"
    except BaseException as error:  # noqa: BLE001
        return f"{where}: {error!r}"
    finally:
        signal.alarm(0)
    return None


def words(value):
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        return f"{tuple(value.shape)}{kind}{' meta' if value.is_meta else ''}"
    return repr(value)[:40]


def in_place(op, where, args, kwargs):
    """The in-place form refuses what it cannot do without having begun it."""
    first = args[0] if args else None
    if "inplace" not in op["forms"] or not isinstance(first, torch.Tensor):
        return None
    if first.is_meta:
        return None
    function = torch._C.ops.get(op["paths"][0] + "_") or getattr(torch.Tensor, op["name"] + "_")
    target = first.clone()
    before = bits(target)
    fault = check(where + " in place", function, [target, *args[1:]], kwargs)
    if fault or check.refused is None or bits(target) == before:
        return fault
    return f"{where}: in place, it raised after it had written"


def bits(t):
    """All of a tensor, as bytes: a nan is itself."""
    return tuple(t.shape), torch._C._to_bytes(t.contiguous())


def run(families):
    calls, faults = 0, []
    for op in torch._C.all_ops():
        if op["family"] not in families or not op["samples"]:
            continue
        function = torch._C.ops.get(op["paths"][0]) or getattr(torch.Tensor, op["name"])
        for sample in op["samples"][:2]:
            given = Arguments(torch, sample, "float32")
            for args, kwargs in variants(op["name"], list(given.args), given.kwargs):
                where = f"{op['name']}({', '.join(map(words, args))}, {kwargs})"
                for fault in (
                    check(where, function, args, kwargs),
                    in_place(op, where, args, kwargs),
                ):
                    if fault:
                        faults.append(fault)
                        print(fault, flush=True)
                calls += 1
    print(f"{calls} calls, {len(faults)} faults")
    return not faults


if __name__ == "__main__":
    faulthandler.enable()
    signal.signal(signal.SIGALRM, give_up)
    torch.zeros(8) @ torch.zeros(8)  # libraries are loaded before memory is bounded
    resource.setrlimit(resource.RLIMIT_AS, (BUDGET, BUDGET))
    sys.exit(0 if run(set(sys.argv[1:])) else 1)
