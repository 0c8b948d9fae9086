"""Every operator: the samples of its record and PyTorch's, in all dtypes, with gradients."""

import contextlib
import math
import sys
from pathlib import Path

from common import DEVICE, FLOATS, look, station_of_records, tensor

import tessera as torch

TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path[:0] = [str(TESTS / "python"), str(TESTS / "conformance")]
OTHERS = (torch.int64, torch.float64, torch.complex64, torch.bool, torch.int32, torch.uint8)


def call(function, sample, dtype):
    from samples import Arguments, tensors_in

    name = str(dtype).split(".")[1]
    given = Arguments(torch, sample, name, device=DEVICE, requires_grad=True)
    outs = tensors_in(function(*given.args, **given.kwargs))
    look(outs)
    outs = [y for y in outs if y.requires_grad]
    if outs:
        torch.autograd.backward(outs, [torch.empty_like(y) for y in outs])


@station_of_records
def records():
    from record_oracle import find

    for op in torch._C.all_ops():
        function = find(torch, op)
        for sample in op["samples"] if function else ():
            for dtype in (*FLOATS, *OTHERS):
                try:
                    call(function, sample, dtype)
                except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
                    pass  # not every operator has every dtype, and values are not computed here


@station_of_records
def every_reduction():
    """In every dtype: one kernel has all forms of such a one."""
    norms = [
        lambda x, p=p: torch.linalg.vector_norm(x, p) for p in (0, 1, 2, 3, math.inf, -math.inf)
    ]
    others = [lambda x, d=d: x.sum(dtype=d) for d in (torch.float32, torch.float64, torch.int64)]
    names = ("sum", "mean", "prod", "amax", "amin", "any", "all", "nansum", "count_nonzero", "var")
    for dtype in (*FLOATS, *OTHERS, torch.int8, torch.int16, torch.complex128):
        x = tensor(7, 5, dtype=dtype)
        for f in (*(getattr(torch, name) for name in names), *norms, *others):
            with contextlib.suppress(RuntimeError, NotImplementedError):
                look(f(x))


@station_of_records
def cases():
    import check

    class Caller(check.Runner):
        """Looks at what it gets instead of comparing it: values are not computed here."""

        def close(self, got, *_):
            look(got)

    file, cases = check.load(TESTS / "conformance" / "cases.zip")
    caller = Caller(file, "tessera", DEVICE)
    for case in cases:
        caller.run(case)
