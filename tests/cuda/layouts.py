#!/usr/bin/env python3
"""layouts.py CASES [SEED]: random shapes, strides and dtypes on cuda against the CPU.

Reductions, softmax, products, indexing, copies and pointwise groups, through views that are
permuted, sliced and expanded; matrices that are transposed beside others that are not. Status 1 if
a result differs; each is printed.
"""

import math
import random
import sys

import tessera as torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
COMPLEX = [torch.complex64, torch.complex128]
TOLERANCE = {torch.float64: 1e-9, torch.float32: 3e-4, torch.float16: 2e-2, torch.bfloat16: 0.1}
SIZES = [1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 64, 65, 129, 257, 300, 1025, 5000, 70000]
LARGEST = 300_000


class Case:
    """Draws one case. Operands are lists of (base, steps): the view is made on each device."""

    def __init__(self, choose):
        self.choose = choose
        self.operands = []

    def values(self, shape, dtype):
        if dtype.is_complex:
            return torch.complex(torch.randn(shape), torch.randn(shape)).to(dtype)
        if dtype.is_floating_point:
            return torch.randn(shape).to(dtype)
        return torch.randint(0, 5, shape).to(dtype)

    def shape(self):
        while True:
            dims = self.choose.randint(0, 4)
            shape = [self.choose.choice(SIZES + [2, 3, 4] * 6) for _ in range(dims)]
            if math.prod(shape) <= LARGEST:
                return shape

    def step(self, x):
        """A function that looks at x another way."""
        kind, dim = self.choose.choice(["permute", "slice", "expand"]), x.dim()
        if kind == "permute":
            order = self.choose.sample(range(dim), dim)
            return lambda t: t.permute(order)
        if kind == "slice" and dim:
            d, by = self.choose.randrange(dim), self.choose.choice([1, 1, 2, 3])
            start = self.choose.randrange(max(x.size(d) // 2, 1))
            return lambda t: t[(slice(None),) * d + (slice(start, None, by),)]
        if kind == "expand" and dim < 5 and x.numel() < LARGEST // 3:
            n, d = self.choose.randint(1, 3), self.choose.randint(0, dim)
            return lambda t: t.unsqueeze(d).expand(*t.shape[:d], n, *t.shape[d:])
        return lambda t: t

    def operand(self, dtype, shape=None):
        """Adds one and returns its view on the CPU; of a given shape it is not expanded."""
        x = base = self.values(self.shape() if shape is None else shape, dtype)
        steps = []
        for _ in range(self.choose.randint(0, 3) if shape is None else 0):
            steps.append(self.step(x))
            x = steps[-1](x)
        self.operands.append((base, steps))
        return x

    def matrix(self, dtype, batch, rows, columns):
        """With dense rows, dense columns or neither."""
        swap, by = self.choose.random() < 0.5, self.choose.choice([1, 1, 2])
        shape = [*batch, *((columns, rows) if swap else (rows, columns))]
        base = self.values([*shape[:-1], shape[-1] * by], dtype)
        steps = [lambda t: t[..., ::by]] + ([lambda t: t.transpose(-1, -2)] if swap else [])
        self.operands.append((base, steps))

    def on(self, device):
        out = []
        for base, steps in self.operands:
            x = base.to(device)
            for step in steps:
                x = step(x)
            out.append(x)
        return out


def reduction(case, pick):
    name = pick.choice(["sum", "sum", "mean", "amax", "amin", "any", "all"])
    dtypes = FLOATS + (COMPLEX if name[0] != "a" else []) + (INTEGERS if name != "mean" else [])
    x = case.operand(pick.choice(dtypes))
    dims = pick.sample(range(x.dim()), pick.randint(min(x.dim(), 1), x.dim()))
    keep = pick.random() < 0.3
    if not dims:
        return name, lambda t: getattr(torch, name)(t)
    return f"{name} over {dims}", lambda t: getattr(torch, name)(t, dim=dims, keepdim=keep)


def softmax(case, pick):
    x = case.operand(pick.choice(FLOATS), None)
    dim, name = pick.randint(-max(x.dim(), 1), -1), pick.choice(["softmax", "log_softmax"])
    return f"{name} over {dim}", lambda t: getattr(torch, name)(t, dim)


def index_select(case, pick):
    x = case.operand(pick.choice(FLOATS + INTEGERS + COMPLEX), [*case.shape(), 3])
    dim = pick.randrange(x.dim())
    at = torch.randint(0, x.size(dim), (pick.randint(0, 9),))
    case.operands.append((at, []))
    return f"index_select over {dim}", lambda t, i: torch.index_select(t, dim, i)


def index_add(case, pick):
    dtype = pick.choice(FLOATS + INTEGERS)
    x = case.operand(dtype, [*case.shape()[:3], 3])
    dim, n = pick.randrange(x.dim()), pick.randint(0, 9)
    case.operands.append((torch.randint(0, x.size(dim), (n,)), []))
    shape = list(x.shape)
    shape[dim] = n
    case.operand(dtype, shape)
    return f"index_add over {dim}", lambda t, i, s: t.index_add(dim, i, s)


def product(case, pick):
    dtype = pick.choice(FLOATS + [torch.int64, torch.int32, torch.uint8])
    m, n, k = (pick.choice(SIZES[:12]) for _ in range(3))
    batches = [[pick.choice([2, 3])] * (pick.random() < 0.4)] * 2
    if pick.random() < 0.3:
        batches[pick.randrange(2)] = []
    case.matrix(dtype, batches[0], m, k)
    case.matrix(dtype, batches[1], k, n)
    if dtype.is_floating_point and not any(batches) and pick.random() < 0.5:
        case.operand(dtype, [n])
        return "addmm", lambda a, b, c: torch.addmm(c, a, b)
    return "matmul", lambda a, b: a @ b


def copy(case, pick):
    dtype = pick.choice(FLOATS + INTEGERS + COMPLEX)
    case.operand(dtype)
    # Out of range, a float to an integer is another number on each device.
    wider = [dtype, torch.complex128] + ([torch.float64] if not dtype.is_complex else [])
    to = pick.choice(wider)
    return f"to {to}", lambda t: t.to(to).contiguous()


def pointwise(case, pick):
    dtype = pick.choice(FLOATS + INTEGERS[:-1])
    x = case.operand(dtype)
    case.operand(dtype, [1 if pick.random() < 0.3 else n for n in x.shape])
    return "pointwise", lambda a, b: torch.where(a > b, a * b + 1, a - b)


def mixture(case, pick, dtype):
    """Three operands for one matrix or several, one of them transposed, some one for many; where
    they begin and how far their rows are apart may forbid vectors. Returns the shape and kinds."""
    batch = [pick.choice([2, 3])] * (pick.random() < 0.3)
    rows, columns = (pick.choice([16, 24, 32, 33, 64, 65, 100, 128, 200, 264]) for _ in "rc")
    kinds = ["swapped"] + [pick.choice(["swapped", "dense", "one", "row", "column"]) for _ in "ab"]
    pick.shuffle(kinds)
    for kind in kinds:
        shape = {"dense": [*batch, rows, columns], "swapped": [*batch, columns, rows],
                 "one": [], "row": [columns], "column": [rows, 1]}[kind]  # fmt: skip
        wider = bool(shape) and pick.random() < 0.3
        base = case.values([*shape[:-1], shape[-1] + 1] if wider else shape, dtype)
        steps = [lambda t, n=pick.randint(0, 1): t[..., n : t.shape[-1] - 1 + n]] * wider
        case.operands.append((base, steps + [lambda t: t.mT] * (kind == "swapped")))
    return [*batch, rows, columns], ", ".join(kinds)


def beside_transposed(case, pick):
    """Into dense memory."""
    dtype = pick.choice(FLOATS + INTEGERS[:-1])
    shape, kinds = mixture(case, pick, dtype)

    def run(a, b, c):
        out = torch.empty(shape, dtype=dtype, device=a.device)
        return torch.add(torch.where(b > c, a, b), c, out=out)

    return kinds, run


def company(case, pick):
    """What is before a reduction and after it."""
    shape, kinds = mixture(case, pick, pick.choice(FLOATS))
    dim, name = pick.randrange(len(shape)), pick.choice(["sum", "mean", "amax", "var", "softmax",
                                                         "log_softmax", "layer_norm"])  # fmt: skip
    after = pick.random() < 0.7

    def run(a, b, c):
        x = (torch.where(b > c, a, b) + c) * 0.5
        if name == "layer_norm":
            y = torch.nn.functional.layer_norm(x, x.shape[-1:])
        else:
            keep = {} if name.endswith("softmax") else {"keepdim": True}
            y = getattr(torch, name)(x, dim, **keep)
        return (y - a).sigmoid() * b if after else y

    return f"{name} over {dim} of {kinds}", run


def differs(got, want):
    got = got.cpu()
    if got.dtype != want.dtype or got.shape != want.shape:
        return True
    if got.dtype.is_complex:
        got, want = torch.view_as_real(got.contiguous()), torch.view_as_real(want.contiguous())
    if not got.dtype.is_floating_point:
        return not bool((got == want).all())
    near = TOLERANCE[got.dtype]
    got, want = got.double(), want.double()
    alike = (got == want) | ((got != got) & (want != want))
    close = want.isfinite() & ((got - want).abs() <= near * (1 + want.abs()))
    return not bool((alike | close).all())


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    choose, wrong = random.Random(seed), 0
    torch.manual_seed(seed)
    kinds = [reduction, softmax, index_select, index_add, product, copy, pointwise]
    kinds += [beside_transposed, company]
    for number in range(count):
        case = Case(choose)
        name, run = choose.choice(kinds)(case, choose)
        want, operands = run(*case.on("cpu")), case.on("cuda")
        if differs(run(*operands), want):
            wrong += 1
            seen = [f"{t.dtype} {tuple(t.shape)} by {t.stride()}" for t in operands]
            print(f"case {number}: {name} of {', '.join(seen)}")
    print(f"{count} cases, {wrong} differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
