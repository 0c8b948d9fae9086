"""Scans on the device under test, beside the CPU's: dtypes, layouts, lengths and both ends."""

import math

import pytest

import tessera as torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.uint8]
COMPLEX = [torch.complex64, torch.complex128]
# A thread's, a warp's, a block's, more than one tile, and such as are no multiple of a vector.
SHAPES = [
    ((1,), 0),
    ((3, 2), 1),
    ((5, 31), 1),
    ((4, 33), -1),
    ((3, 132), 1),
    ((2, 1000), 1),
    ((2, 4096), 1),
    ((3, 5001), 1),
    ((20000,), 0),
    ((40, 3), 0),
    ((300, 70), 0),
    ((2, 150, 5), 1),
    ((700, 2), 0),
    ((3, 4, 5, 6), 2),
]
TOLERANCE = {
    torch.float16: 1e-2,
    torch.bfloat16: 5e-2,
    torch.float32: 2e-5,
    torch.complex64: 2e-5,
    torch.float64: 1e-12,
    torch.complex128: 1e-12,
}


def sample(shape, dtype):
    n = math.prod(shape)
    if dtype in INTEGERS:
        return (
            (torch.arange(n) * 7919 % 23 - (0 if dtype == torch.uint8 else 11))
            .reshape(shape)
            .to(dtype)
        )
    if dtype == torch.bool:
        return (torch.arange(n) * 7919 % 5 == 0).reshape(shape)
    wave = torch.sin(torch.arange(n, dtype=torch.float64) * 1.7) / 4
    if dtype in COMPLEX:
        return torch.complex(wave, wave.flip(0) * 0.5).reshape(shape).to(dtype)
    return wave.reshape(shape).to(dtype)


def layouts(x):
    yield x
    if x.dim() > 1:
        yield x.transpose(0, -1).contiguous().transpose(0, -1)
    wide = torch.zeros(*x.shape[:-1], x.shape[-1] * 2 + 1, dtype=x.dtype)
    wide[..., 1::2] = x
    yield wide[..., 1::2]
    yield x[..., :1].expand(x.shape)


def agree(got, want, scale=1.0):
    assert got.dtype == want.dtype and got.shape == want.shape
    got = got.cpu()
    if want.dtype not in TOLERANCE:
        assert torch.equal(got, want)
        return
    wide = torch.complex128 if want.dtype in COMPLEX else torch.float64
    tolerance = TOLERANCE[want.dtype] * scale
    assert torch.allclose(
        got.to(wide), want.to(wide), rtol=tolerance, atol=tolerance, equal_nan=True
    )


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + COMPLEX)
@pytest.mark.parametrize("shape,dim", SHAPES)
def test_cumsum(device, shape, dim, dtype):
    x = sample(shape, dtype)
    for view, there in zip(layouts(x), layouts(x.to(device)), strict=True):
        agree(there.cumsum(dim), view.cumsum(dim), 4)


@pytest.mark.parametrize("name", ["cumprod", "logcumsumexp"])
@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("shape,dim", SHAPES)
def test_products_and_logarithms(device, name, shape, dim, dtype):
    x = sample(shape, dtype)
    x = x + (1 if name == "cumprod" else 0)
    f = getattr(torch, name)
    agree(f(x.to(device), dim), f(x, dim), 20 if x.dtype in (torch.float32, torch.complex64) else 2)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + [torch.bool])
@pytest.mark.parametrize("shape,dim", SHAPES)
def test_extremes(device, name, shape, dim, dtype):
    x = sample(shape, dtype)
    if x.numel() > 40 and dtype in FLOATS:
        x.reshape(-1)[x.numel() * 3 // 4] = float("nan")
    for view, there in zip(layouts(x), layouts(x.to(device)), strict=True):
        want, got = getattr(torch, name)(view, dim), getattr(torch, name)(there, dim)
        agree(got.values, want.values)
        agree(got.indices, want.indices)


@pytest.mark.parametrize("shape,dim", SHAPES)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
def test_gradients(device, name, shape, dim):
    """Sums from the end, and y = g + a * y."""
    grads = []
    for where in ("cpu", device):
        x = (sample(shape, torch.float64) + 0.9).to(where).requires_grad_()
        y = getattr(torch, name)(x, dim)
        weight = torch.cos(torch.arange(y.numel(), dtype=torch.float64)).reshape(y.shape)
        (y * weight.to(where)).sum().backward()
        grads.append(x.grad)
    agree(grads[1], grads[0], 1e3)


def test_products_whose_parts_leave_the_range(device):
    """A zero at the beginning holds, whatever the rest of the line would come to alone."""
    for dtype in (torch.float32, torch.float64):
        x = torch.full((9000,), 8.0, dtype=dtype)
        x[0] = 0
        assert torch.equal(torch.cumprod(x.to(device), 0).cpu(), torch.zeros_like(x))
        x[0] = 1
        x[1:4001] = 2.0
        y = torch.cumprod(x.to(device), 0).cpu()
        assert y[10] == 1024 and y[2000] == math.inf


def test_special_values(device):
    inf, nan = math.inf, math.nan
    for line in ([-inf, -inf, 1.0, inf, 2.0], [inf, inf, -inf], [1.0, nan, 2.0], [-inf, nan, inf]):
        x = torch.tensor(line)
        agree(torch.logcumsumexp(x.to(device), 0), torch.logcumsumexp(x, 0))
        agree(torch.cumsum(x.to(device), 0), torch.cumsum(x, 0))
        agree(torch.cumprod(x.to(device), 0), torch.cumprod(x, 0))
        for name in ("cummax", "cummin"):
            got, want = getattr(torch, name)(x.to(device), 0), getattr(torch, name)(x, 0)
            agree(got.values, want.values)
            agree(got.indices, want.indices)


def test_few_long_lines(device):
    """Tiles of one line on many blocks, more than one group of them."""
    n = 4096 * 70 + 5
    x = (torch.arange(n) * 7919 % 1001) - 500
    agree(x.to(device).cumsum(0), x.cumsum(0))
    agree(x.to(torch.float32).to(device).cumsum(0), x.to(torch.float32).cumsum(0), 10)
    y = x[: n - 5].reshape(-1, 2)
    agree(y.to(device).cumsum(0), y.cumsum(0))
    z = x[: 128 * 40 * 33].reshape(-1, 33)
    agree(z.to(device).cumsum(0), z.cumsum(0))


def test_many_long_lines(device):
    x = (torch.arange(1100 * 4100) % 13 - 6).to(torch.int32).reshape(1100, 4100)
    got = x.to(device).cumsum(1, dtype=torch.int32)
    agree(got, x.cumsum(1, dtype=torch.int32))
