"""Pools on the device against the CPU's: dtypes, layouts, windows, gradients."""

import pytest

import tessera as torch
import tessera.nn.functional as F

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def numbers(shape, dtype, seed=0):
    """Few distinct values, so that windows have ties."""
    torch.manual_seed(seed)
    return torch.randint(-20, 20, shape).to(dtype)


def laid_out(x, layout, device):
    x = x.to(device)
    if layout == "last":
        return x.contiguous(memory_format=torch.channels_last)
    if layout == "transposed":
        return x.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "sliced":
        wide = torch.zeros(*x.shape[:-1], x.shape[-1] + 3, dtype=x.dtype, device=device)
        wide[..., 1:-2] = x
        return wide[..., 1:-2]
    return x


def same(a, b, dtype=None):
    a = a.cpu()
    assert a.shape == b.shape and a.dtype == b.dtype
    exact = dtype in (None, torch.float32, torch.float64) or not dtype.is_floating_point
    tolerance = 0 if exact else 0.05
    close = (a.double() - b.double()).abs() <= tolerance * (1 + b.double().abs())
    assert bool((close | (a != a) & (b != b)).all())


MAX_CASES = [
    ((2, 3, 9, 11), 2, {"kernel_size": 2}),
    ((2, 8, 13, 7), 2, {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((1, 16, 12, 10), 2, {"kernel_size": (2, 3), "stride": (1, 2), "dilation": (2, 1)}),
    ((2, 4, 33, 31), 2, {"kernel_size": 9, "stride": 5, "padding": 4, "ceil_mode": True}),
    ((3, 5, 40), 1, {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((2, 2, 6, 7, 8), 3, {"kernel_size": 2, "stride": 2, "padding": 1, "ceil_mode": True}),
    ((4, 9, 9), 2, {"kernel_size": 3}),
]


@pytest.mark.parametrize("layout", ["dense", "last", "transposed", "sliced"])
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.uint8])
def test_largest(device, dtype, layout):
    for shape, n, options in MAX_CASES:
        if layout == "last" and len(shape) != 4:
            continue
        x = numbers(shape, dtype)
        here = laid_out(x, layout, device)
        grads = dtype.is_floating_point
        if grads:
            x.requires_grad_()
            here = here.detach().requires_grad_()
        pool = getattr(F, f"max_pool{n}d")
        want, places = pool(x, return_indices=True, **options)
        got, at = pool(here, return_indices=True, **options)
        same(got.detach(), want.detach())
        same(at, places)
        if layout == "last" and device == "cuda":
            assert got.is_contiguous(memory_format=torch.channels_last)
        if grads:
            g = numbers(want.shape, dtype, 1)
            want.backward(g)
            got.backward(g.to(device))
            same(here.grad, x.grad, dtype)


@pytest.mark.parametrize("layout", ["dense", "last"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_adaptive(device, dtype, layout):
    for shape, size in [((2, 8, 14, 15), (1, 1)), ((2, 3, 7, 9), (3, 5)), ((1, 4, 5, 5), (7, 8))]:
        for name in ("adaptive_max_pool2d", "adaptive_avg_pool2d"):
            x = numbers(shape, dtype).requires_grad_()
            here = laid_out(x.detach(), layout, device).requires_grad_()
            want, got = getattr(F, name)(x, size), getattr(F, name)(here, size)
            kind = torch.bfloat16 if name.startswith("adaptive_avg") else None
            same(got.detach(), want.detach(), kind)
            g = numbers(want.shape, dtype, 1)
            want.backward(g)
            got.backward(g.to(device))
            same(here.grad, x.grad, torch.bfloat16)


AVG_CASES = [
    ((2, 3, 9, 11), 2, {"kernel_size": 2}),
    ((2, 8, 13, 7), 2, {"kernel_size": 3, "stride": 2, "padding": 1}),
    ((1, 16, 12, 10), 2, {"kernel_size": (2, 3), "padding": 1, "count_include_pad": False}),
    ((2, 4, 33, 31), 2, {"kernel_size": 9, "stride": 5, "padding": 4, "divisor_override": 7}),
    ((3, 5, 40), 1, {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    ((2, 2, 6, 7, 8), 3, {"kernel_size": 2, "stride": 2, "padding": 1}),
]


@pytest.mark.parametrize("layout", ["dense", "last", "sliced"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_averages(device, dtype, layout):
    for shape, n, options in AVG_CASES:
        if layout == "last" and len(shape) != 4:
            continue
        x = numbers(shape, dtype).requires_grad_()
        here = laid_out(x.detach(), layout, device).requires_grad_()
        pool = getattr(F, f"avg_pool{n}d")
        want, got = pool(x, **options), pool(here, **options)
        same(got.detach(), want.detach(), torch.bfloat16)
        g = numbers(want.shape, dtype, 1)
        want.backward(g)
        got.backward(g.to(device))
        same(here.grad, x.grad, torch.bfloat16)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
def test_unpool(device, dtype):
    """Of several elements that go to one place the last is kept."""
    x = numbers((2, 8, 4, 4), dtype)
    torch.manual_seed(3)
    at = torch.randint(0, 49, (2, 8, 4, 4))
    want = F.max_unpool2d(x, at, 2, output_size=(7, 7)) if dtype.is_floating_point else None
    if want is None:
        want = torch.zeros(16, 49, dtype=dtype)
        for plane, (values, places) in enumerate(zip(x.view(16, 16), at.view(16, 16), strict=True)):
            for v, p in zip(values.tolist(), places.tolist(), strict=True):
                want[plane, p] = v
        want = want.view(2, 8, 7, 7)
    same(F.max_unpool2d(x.to(device), at.to(device), 2, output_size=(7, 7)), want)
    last = at.to(device).contiguous(memory_format=torch.channels_last)
    same(F.max_unpool2d(x.to(device), last, 2, output_size=(7, 7)), want)
    at[1, 2, 3, 1] = 49
    with pytest.raises(RuntimeError, match="invalid max index: 49"):
        F.max_unpool2d(x.to(device), at.to(device), 2, output_size=(7, 7)).cpu()


def test_nan_and_empty_windows(device):
    x = torch.arange(64.0).reshape(1, 1, 8, 8)
    x[0, 0, 3, 3] = float("nan")
    x[0, 0, 4, 1] = float("nan")
    for size in (2, 8):
        want, places = F.max_pool2d(x, size, return_indices=True)
        got, at = F.max_pool2d(x.to(device), size, return_indices=True)
        same(got, want)
        same(at, places)
    # Steps of three from outside jump over an input of two.
    got = F.max_pool2d(torch.ones(1, 1, 2, 2, device=device), 2, 1, 1, 3)
    assert got.tolist() == [[[[float("-inf")]]]]


def test_second_derivative(device):
    x = numbers((2, 3, 6, 6), torch.float64)
    for move in (lambda t: F.max_pool2d(t, 3, 2, 1), lambda t: F.avg_pool2d(t, 3, 2, 1)):
        answers = []
        for where in ("cpu", device):
            t = x.to(where).requires_grad_()
            (g,) = torch.autograd.grad((move(t) ** 3).sum(), t, create_graph=True)
            (h,) = torch.autograd.grad((g * g).sum(), t)
            answers.append(h)
        same(answers[1], answers[0], torch.bfloat16)
