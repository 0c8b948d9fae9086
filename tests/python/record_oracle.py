"""Records PyTorch's answers to the records' samples, for machines that have no PyTorch.

python record_oracle.py list | python-with-torch record_oracle.py record data/oracle.json
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from samples import DTYPES, Arguments, case, flat, weights


def list_operators():
    import tessera

    keep = ("name", "samples", "random", "forms")
    ops = [{k: op[k] for k in keep} for op in tessera._C.all_ops()]
    json.dump([op for op in ops if op["samples"] and not op["random"]], sys.stdout)


def find(torch, name):
    for place in (torch, torch.nn.functional, torch.Tensor):
        if hasattr(place, name):
            return getattr(place, name)
    if name == "slice":
        return lambda t, *a: torch.ops.aten.slice(t, *a)
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
    except (RuntimeError, TypeError):
        return None
    if narrow and isinstance(out, torch.Tensor) and out.is_floating_point() and given.tensors:
        out = out.to(getattr(torch, dtype))
    if dtype in ("int64", "bool") and isinstance(out, torch.Tensor) and out.numel() == 0:
        return None  # dtypes are not checked there
    if not isinstance(out, torch.Tensor):
        return None
    grads = []
    if out.requires_grad:
        (out.float() * weights(torch, out)).sum().backward()
        grads = [None if t.grad is None else flat(t.grad) for t in given.tensors]
    name = str(out.dtype).removeprefix("torch.")
    return {"dtype": name, "shape": list(out.shape), "values": flat(out), "grads": grads}


def rounded(value):
    """Nine digits: all that float32 has."""
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return float(f"{value:.9g}") if isinstance(value, float) else value


def record(path):
    import torch

    answers = {}
    for op in json.load(sys.stdin):
        function = find(torch, op["name"])
        if op["name"].startswith("_") or function is None:
            continue
        for sample in op["samples"]:
            for dtype in DTYPES:
                found = answer(torch, function, sample, dtype)
                if found is not None:
                    answers[case(op, sample, dtype)] = rounded(found)
    Path(path).parent.mkdir(exist_ok=True)
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(answers.items()))
    Path(path).write_text("{\n" + lines + "\n}\n")
    print(f"{len(answers)} answers of PyTorch {torch.__version__}", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1] == "list":
        list_operators()
    else:
        record(sys.argv[2])
