"""Tensors to print, the same for PyTorch, which recorded its texts, and for Tessera."""

from itertools import product
from random import Random

inf, nan = float("inf"), float("nan")

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")

_r = Random(5)
SETS = {
    "zero": [0.0],
    "negative zero": [-0.0, 0.0],
    "one": [1.0],
    "halves": [0.5, -1.5, 2.25],
    "whole": [1.0, -2.0, 30.0, 400.0],
    "whole and large": [1.0, 2000.0],
    "whole and ratio 1000": [1.0, 1000.0],
    "large": [2.0e8, 1.0e8 + 8],
    "hundred million": [1.0e8, 3.0e7],
    "small": [1.0e-5, 2.0e-5],
    "just not small": [1.0e-4, 2.0e-4],
    "wide": [1.0e-3, 5.0, 1.5],
    "just not wide": [0.5, 499.75],
    "huge": [1.0e30, -1.0e30],
    "tiny": [1.0e-30, -1.0e-30],
    "extremes": [3.4e38, 1.2e-38],
    "nan": [nan],
    "infinities": [inf, -inf],
    "nan and whole": [nan, 1.0, -20.0],
    "nan and halves": [nan, 0.5, inf],
    "infinity and large": [inf, 1.0e10, 1.5],
    "rounding": [0.12345, 0.99995, 1.00005, 9.99999],
    "thirds": [1 / 3, -2 / 3, 100 / 3],
    "some": [_r.uniform(-3, 3) for _ in range(11)],
    "spread": [10 ** _r.uniform(-4, 4) for _ in range(7)],
}
WHOLE = {
    "zeros": [0, 0],
    "digits": [1, 22, 100],
    "byte": [0, 255],
    "signed": [-1, 0, 100, -100],
    "many": list(range(40)),
    "large": [2**40, -(2**40), 7],
    "extremes": [2**63 - 1, -(2**63)],
}
SHAPES = ((), (1,), (5,), (1, 1), (2, 3), (3, 1), (2, 2, 2), (1, 3, 1, 2), (2, 1, 2, 1, 2))
LONG = (
    (1001,),
    (1000,),
    (40, 40),
    (11, 3, 40),
    (3, 400),
    (400, 3),
    (2, 2, 7, 40),
    (1, 2000),
    (8, 7, 20),
)
EMPTY = ((0,), (0, 3), (3, 0), (2, 0, 5))
OPTIONS = (
    {"precision": 0},
    {"precision": 2},
    {"precision": 10},
    {"threshold": 5},
    {"threshold": 5, "edgeitems": 1},
    {"threshold": 5, "edgeitems": 2, "linewidth": 30},
    {"linewidth": 20},
    {"linewidth": 200},
    {"profile": "short"},
    {"profile": "full"},
    {"profile": "full", "precision": 3},
    {"edgeitems": 5},
)


def _filled(shape, step=0.25, start=-3.0):
    count = 1
    for n in shape:
        count *= n
    return [start + step * i for i in range(count)]


def cases():
    """Tuples of a name, values, shape, dtype, options and flags."""
    plain = {}
    for (name, values), dtype in product(SETS.items(), FLOATS):
        yield f"{dtype} {name}", values, (len(values),), dtype, plain, ""
    for (name, values), dtype in product(WHOLE.items(), INTEGERS):
        low, high = (0, 255) if dtype == "uint8" else (-(2 ** (int(dtype[3:]) - 1)), None)
        high = high or -low - 1
        if all(low <= v <= high for v in values):
            yield f"{dtype} {name}", values, (len(values),), dtype, plain, ""
    for values in ([True], [False, False], [True, False, True]):
        yield f"bool {values}", values, (len(values),), "bool", plain, ""
    for (name, values), dtype in product(SETS.items(), COMPLEX):
        pairs = [complex(a, b) for a, b in zip(values, reversed(values))]
        yield f"{dtype} {name}", pairs, (len(pairs),), dtype, plain, ""
        yield f"{dtype} {name} 0-d", pairs[:1], (), dtype, plain, ""
    for (name, values), dtype in product(SETS.items(), ("float32", "float16")):
        yield f"{dtype} {name} 0-d", values[:1], (), dtype, plain, ""
    for shape, dtype in product(SHAPES, ("float32", "int64", "float64")):
        yield f"{dtype} {shape}", _filled(shape), shape, dtype, plain, ""
        yield f"{dtype} {shape} grad", _filled(shape), shape, dtype, plain, "grad"
    for shape, dtype in product(LONG, ("float32", "int16")):
        yield (
            f"{dtype} {shape}",
            _filled(shape, 1.0 if dtype == "int16" else 0.5),
            shape,
            dtype,
            plain,
            "",
        )
    yield "transposed", _filled((40, 41)), (40, 41), "float32", plain, "transposed"
    yield "transposed small", _filled((2, 3)), (2, 3), "int32", plain, "transposed"
    for shape, dtype in product(EMPTY, ("float32", "int64", "bool", "float64", "complex64")):
        yield f"{dtype} {shape}", [], shape, dtype, plain, ""
    for options, shape in product(OPTIONS, ((), (3,), (30,), (4, 9), (3, 3, 3))):
        yield f"{options} {shape}", _filled(shape, 0.125), shape, "float32", options, ""
        yield f"{options} {shape} int", _filled(shape, 1.0), shape, "int32", options, ""
    for options in OPTIONS[:8]:
        pairs = [complex(v, -v * v) for v in _filled((9,), 0.75)]
        yield f"{options} complex", pairs, (3, 3), "complex64", options, ""
    for width in range(30, 60):
        yield f"suffix {width}", _filled((5,)), (5,), "float64", {"linewidth": width}, "grad"
    for name in ("mul", "add", "sum", "view", "clone", "exp"):
        yield f"grad_fn {name}", _filled((2, 2)), (2, 2), "float32", plain, name


def build(torch, values, shape, dtype, flags):
    kind = getattr(torch, dtype)
    if dtype in INTEGERS:
        values = [int(v) for v in values]
    t = torch.tensor(values, dtype=kind).reshape(shape)
    if flags == "grad":
        return t.requires_grad_() if dtype in FLOATS else t
    if flags == "transposed":
        return t.t()
    if flags:
        t.requires_grad_()
        made = {
            "mul": lambda: t * 2,
            "add": lambda: t + 1,
            "sum": lambda: t.sum(),
            "view": lambda: t.view(4),
            "clone": lambda: t.clone(),
            "exp": lambda: t.exp(),
        }
        return made[flags]()
    return t


def texts(torch, supported=lambda dtype: True):
    """What `torch` prints, by the cases' names."""
    out = {}
    for name, values, shape, dtype, options, flags in cases():
        if not supported(dtype):
            continue
        assert name not in out, name
        torch.set_printoptions(profile="default")
        torch.set_printoptions(**options)
        try:
            out[name] = repr(build(torch, values, shape, dtype, flags))
        finally:
            torch.set_printoptions(profile="default")
    return out


if __name__ == "__main__":  # python-with-torch printing_cases.py >data/printing.json
    import json
    import sys

    import torch

    json.dump(texts(torch), sys.stdout, indent=0, sort_keys=True)
    print()
