"""Records PyTorch's answers to the records' samples, for machines that have no PyTorch.

python record_oracle.py list [FAMILY...] | python-with-torch record_oracle.py record data/oracle
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from samples import DTYPES, Arguments, case, flat, tensors_in, weights


def list_operators():
    import tessera

    keep = ("name", "paths", "family", "samples", "random")
    wanted = sys.argv[2:]
    ops = [{k: op[k] for k in keep} for op in tessera._C.all_ops()]
    ops = [op for op in ops if not wanted or op["family"] in wanted]
    json.dump([op for op in ops if op["samples"] and not op["random"]], sys.stdout)


def find(torch, op):
    for path in [*op["paths"], *("nn.functional." + p for p in op["paths"])]:
        place = torch
        for part in path.split("."):
            place = getattr(place, part, None)
        if place is not None:
            return place
    if hasattr(torch.Tensor, op["name"]):
        return getattr(torch.Tensor, op["name"])
    if op["name"] in ("slice", "index"):  # operators that have no name in Python
        return lambda *a: getattr(torch.ops.aten, op["name"])(*a)
    return None


def answer(torch, function, text, dtype):
    """The result and the gradients, or None where PyTorch raises.

    Of 16-bit floats the answer is the float32 one, rounded: the numbers are exact in both, and old
    CPU kernels lack the dtypes or add up in them.
    """
    narrow = dtype in ("float16", "bfloat16")
    given = Arguments(torch, text, "float32" if narrow else dtype, requires_grad=True)
    try:
        out = function(*given.args, **given.kwargs)
    except (RuntimeError, TypeError, IndexError, ValueError):
        return None
    outs = tensors_in(out)
    if not outs or any(t.is_complex() for t in outs):
        return None
    if dtype in ("int64", "bool") and any(t.numel() == 0 for t in outs):
        return None  # dtypes are not checked there
    if narrow and any(not t.is_complex() for t in given.tensors):
        # What is float64 or an integer is so of any arguments.
        narrowed = getattr(torch, dtype)
        outs = [t.to(narrowed) if t.dtype == torch.float32 else t for t in outs]
    grads = []
    loss = [(t.float() * weights(torch, t)).sum() for t in outs if t.requires_grad]
    try:
        if loss:
            sum(loss).backward()
            grads = [None if t.grad is None else flat(t.grad) for t in given.tensors]
    except RuntimeError as error:
        # This PyTorch's own faults: what is not there, and gradients of inverse() that it breaks.
        if not any(words in str(error) for words in ("is not implemented", "LinalgInvEx")):
            raise
    return {
        "dtypes": [str(t.dtype).removeprefix("torch.") for t in outs],
        "shapes": [list(t.shape) for t in outs],
        "values": [flat(t) for t in outs],
        "grads": grads,
    }


def rounded(value):
    """Nine digits: all that float32 has."""
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return float(f"{value:.9g}") if isinstance(value, float) else value


def record(folder):
    import torch

    families = {}
    for op in json.load(sys.stdin):
        answers = families.setdefault(op["family"], {})
        function = find(torch, op)
        if op["name"].startswith("_") or function is None:
            continue
        for sample in op["samples"]:
            for dtype in DTYPES:
                found = answer(torch, function, sample, dtype)
                if found is not None:
                    answers[case(op, sample, dtype)] = rounded(found)
    Path(folder).mkdir(exist_ok=True)
    for family, answers in families.items():
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(answers.items()))
        (Path(folder) / f"{family}.json").write_text("{\n" + lines + "\n}\n")
        print(f"{family}: {len(answers)} answers of PyTorch {torch.__version__}", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1] == "list":
        list_operators()
    else:
        record(sys.argv[2])
