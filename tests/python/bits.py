"""Run in a process of its own: computes what `cases` lists and prints a checksum of each result.

Which instruction set and how many threads the CPU's loops use is fixed when the library is loaded,
so test_bits.py starts this once for each and compares."""

import ctypes
import hashlib
import itertools
import json

import numpy as np

import tessera as torch


def numbers(*shape, dtype=np.float32, seed=1):
    values = np.random.default_rng(seed).standard_normal(shape) * 3
    return torch.from_numpy(values.astype(dtype))


def reductions():
    """Long and short, along memory and across it, of runs that end anywhere."""
    shapes = [(70001,), (3, 20003), (900, 131), (131, 900), (4099, 3), (5, 67, 513), (40, 9, 7, 29)]
    for shape in shapes:
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32):
            x = numbers(*shape).to(dtype)
            layouts = {"as made": x, "transposed": x.transpose(0, -1), "stepped": x[..., ::2]}
            for layout, y in layouts.items():
                for dim in [None, *range(y.dim())]:
                    name = f"{tuple(y.shape)} {layout} {dtype} over {dim}"
                    over = () if dim is None else (dim,)
                    yield f"sum {name}", lambda y=y, over=over: y.sum(*over)
                    yield f"amax {name}", lambda y=y, over=over: y.amax(*over)
                    if dtype != torch.int32:
                        yield f"var {name}", lambda y=y, over=over: torch.var_mean(y, *over)
    x = numbers(300, 41)
    for name in ("mean", "prod", "any", "all", "amin", "std"):
        for dim in (0, 1):
            yield f"{name} over {dim}", lambda n=name, d=dim: getattr(x, n)(d)


def copies():
    """Blocks, runs and rows of every element size, with rest."""
    shapes = [(131, 70), (3, 67, 45), (5, 3, 33, 18), (2100, 1030), (1029, 3)]
    for shape in shapes:
        for dtype in (torch.uint8, torch.bfloat16, torch.float32, torch.float64, torch.complex128):
            x = numbers(*shape).to(torch.int32).to(dtype)
            for order in itertools.permutations(range(len(shape))):
                name = f"{shape} {dtype} in order {order}"
                yield f"copy {name}", lambda x=x, o=order: x.permute(*o).contiguous()
            yield f"copy stepped {shape} {dtype}", lambda x=x: x[..., ::2].contiguous()


def softmaxes():
    """Rows long and short, columns, and gradients, which have kernels of their own."""
    for shape in [(7, 5000), (700, 10), (300, 65), (70, 131), (3, 90, 67), (2, 3, 700)]:
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            x = numbers(*shape).to(dtype)
            g = numbers(*shape, seed=2).to(dtype)
            for dim in range(x.dim()):
                for name in ("softmax", "log_softmax"):
                    f = getattr(torch, name)
                    yield f"{name} {shape} {dtype} {dim}", lambda f=f, x=x, d=dim: f(x, d)
                    back = getattr(torch._C.ops["_" + name + "_backward"], "__call__")
                    yield (
                        f"{name} backward {shape} {dtype} {dim}",
                        lambda f=back, x=x, g=g, d=dim: f(g, x, d),
                    )


def products():
    """Packed and not, from every layout, with rest in each direction; vectors; batches."""
    shapes = [(1, 1, 1), (7, 300, 5), (64, 64, 64), (65, 513, 70), (150, 260, 190), (3, 40, 400)]
    shapes += [(1, 700, 90), (90, 700, 1), (130, 1, 130), (5, 515, 130), (30, 260, 1030)]
    for m, k, n in shapes:
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            a, b = numbers(m, k).to(dtype), numbers(k, n, seed=2).to(dtype)
            at, bt = a.t().contiguous().t(), b.t().contiguous().t()
            name = f"{m} x {k} x {n} {dtype}"
            for x, y in [(a, b), (at, b), (a, bt), (at, bt)]:
                yield f"{name} {x.stride()} {y.stride()}", lambda x=x, y=y: x @ y
    a, b = numbers(20, 33, 47), numbers(20, 47, 29, seed=2)
    yield "bmm", lambda: torch.bmm(a, b)


def norms():
    """Rows and columns of channels, with gradients."""
    f = torch.nn.functional
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        w, b = numbers(6, seed=2).to(dtype), numbers(6, seed=3).to(dtype)
        x, image = numbers(130, 6).to(dtype), numbers(4, 6, 65, 70).to(dtype)
        long = numbers(9, 5000).to(dtype)
        calls = {
            "layer": (x, lambda t: f.layer_norm(t, (6,), w, b)),
            "long layer": (long, lambda t: f.layer_norm(t, (5000,))),
            "rms": (long, lambda t: f.rms_norm(t, (5000,))),
            "group": (image, lambda t: f.group_norm(t, 3, w, b)),
            "batch": (image, lambda t: f.batch_norm(t, None, None, w, b, True)),
            "batch of rows": (x, lambda t: f.batch_norm(t, None, None, w, b, True)),
        }
        for name, (given, call) in calls.items():
            yield f"{name} norm {dtype}", lambda c=call, t=given: c(t)

            def gradients(c=call, t=given):
                leaf = t.clone().requires_grad_()
                ws = [p.requires_grad_() for p in (w, b)]
                for p in ws:
                    p.grad = None
                out = c(leaf)
                (out * out.detach()).sum().backward()
                return [leaf.grad] + [p.grad for p in ws if p.grad is not None]

            yield f"{name} norm's gradients {dtype}", gradients


def functions():
    """Every function of one number, over all its range."""
    bits = np.arange(0, 2**32, 65521, dtype=np.uint32)
    floats = torch.from_numpy(bits.view(np.float32).copy())
    names = "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh "
    names += "acosh atanh erf erfc sigmoid rsqrt"
    for name in names.split():
        f = getattr(torch, name)
        yield f"{name}", lambda f=f: f(floats)
        yield f"{name} double", lambda f=f: f(numbers(1000, dtype=np.float64))
    a, b = floats[::7], floats[3::7]
    n = min(a.numel(), b.numel())
    yield "pow", lambda: torch.pow(a[:n], b[:n])


def cases():
    yield from functions()
    yield from norms()
    yield from products()
    yield from reductions()
    yield from copies()
    yield from softmaxes()


def checksum(result):
    results = result if isinstance(result, (tuple, list)) else [result]
    digest = hashlib.sha256()
    for tensor in results:
        dense = tensor.contiguous()
        digest.update(ctypes.string_at(dense.data_ptr(), dense.numel() * dense.itemsize))
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    print(json.dumps({name: checksum(function()) for name, function in cases()}))
