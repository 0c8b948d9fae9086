"""Every operator once: the samples that its record brings, with gradients."""

import sys
from pathlib import Path

from common import DEVICE, FLOATS, look, station_of_records

import tessera as torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))


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
            for dtype in (*FLOATS, torch.int64):
                try:
                    call(function, sample, dtype)
                except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
                    pass  # not every operator has every dtype, and values are not computed here
