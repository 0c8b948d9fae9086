"""Pointwise work on transposed operands beside others, into memory that is not: on CUDA they go
through tiles, of single elements or of vectors."""

import itertools

import pytest

import tessera as torch

SIZES = {
    "small": (100, 60),
    "of vectors": (96, 136),
    "odd": (131, 75),
    "several": (3, 72, 104),
    "short": (70000, 16),
    "large": (4104, 2056),
}
DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.int8, torch.complex64]


def values(shape, dtype, seed):
    made = torch.Generator().manual_seed(seed)
    return torch.randint(-40, 40, shape, generator=made).to(dtype)


def swapped(shape, dtype, seed):
    return values((*shape[:-2], shape[-1], shape[-2]), dtype, seed).mT


LAYOUTS = {
    "swapped": swapped,
    "dense": values,
    "one": lambda shape, dtype, seed: values((), dtype, seed),
    "row": lambda shape, dtype, seed: values(shape[-1:], dtype, seed),
    "column": lambda shape, dtype, seed: values((shape[-2], 1), dtype, seed),
}


def there(x, device):
    """x on a device, laid out as it is here."""
    return x.mT.to(device).mT if x.dim() > 1 and x.stride(-1) != 1 else x.to(device)


def compare(f, operands, dtype, device):
    shape = torch.broadcast_shapes(*(x.shape for x in operands))
    here, out = (torch.empty(shape, dtype=dtype, device=d) for d in ("cpu", device))
    f(*operands, out=here)
    f(*(there(x, device) for x in operands), out=out)
    assert out.is_contiguous() and torch.equal(out.cpu(), here)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_copies(size, dtype, accelerator):
    x = swapped(SIZES[size], dtype, 1)
    moved = there(x, accelerator)
    assert moved.stride() == x.stride()
    assert torch.equal(moved.contiguous().cpu(), x.contiguous())


@pytest.mark.parametrize("size", ["small", "odd", "of vectors"])
@pytest.mark.parametrize("layouts", list(itertools.permutations(LAYOUTS, 2)), ids=" ".join)
def test_two(layouts, size, accelerator):
    operands = [LAYOUTS[n](SIZES[size], torch.float32, i) for i, n in enumerate(layouts)]
    if max(x.dim() for x in operands) < 2:
        operands[0] = operands[0].expand(SIZES[size])
    compare(torch.mul, operands, torch.float32, accelerator)


THREE = [names for names in itertools.product(LAYOUTS, repeat=3) if "swapped" in names]


def where_less(a, b, c, out):
    return torch.add(torch.where(a < b, c, a), b, out=out)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("layouts", THREE, ids=" ".join)
def test_three(layouts, dtype, accelerator):
    shape = SIZES["large" if layouts.count("swapped") == 2 else "of vectors"]
    operands = [LAYOUTS[n](shape, dtype, i) for i, n in enumerate(layouts)]
    compare(where_less, operands, dtype, accelerator)


@pytest.mark.parametrize("into", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("size", ["of vectors", "large"])
def test_into_another_dtype(size, dtype, into, accelerator):
    x = swapped(SIZES[size], dtype, 1)
    out = torch.empty(x.shape, dtype=into, device=accelerator)
    out.copy_(there(x, accelerator))
    assert torch.equal(out.cpu(), x.to(into))


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_vectors_begin_where_memory_is_aligned(first, accelerator):
    """Views that begin a few elements into their memory, or whose rows do."""
    x = values((104, 72), torch.float32, 1).to(accelerator)
    for view in (x[:, first:], x[first:], x[first : first + 64, 4:], x.view(-1)[first:][:-4]):
        if view.dim() == 1:
            view = view[: 64 * 100].view(100, 64)
        assert torch.equal(view.t().contiguous().cpu(), view.cpu().t().contiguous())


@pytest.mark.parametrize("size", ["of vectors", "large"])
def test_four_swapped(size, accelerator):
    operands = [swapped(SIZES[size], torch.float32, i) for i in range(4)]
    moved = [there(x, accelerator) for x in operands]
    out = torch.empty(SIZES[size], device=accelerator)
    torch.add(moved[0] * moved[1], moved[2] - moved[3], out=out)
    assert torch.equal(
        out.cpu(), (operands[0] * operands[1] + (operands[2] - operands[3])).contiguous()
    )
