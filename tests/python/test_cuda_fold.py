"""Reductions that keep more than a number, and softmax's gradient, beside the CPU's."""

import math

import pytest

import tessera as torch

TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1e-2, torch.float32: 2e-5, torch.float64: 1e-11}
FLOATS = list(TOLERANCE)
SHAPES = [
    ((), 0),
    ((1,), 0),
    ((0, 3), 1),
    ((5, 31), 1),
    ((4, 33), 1),
    ((3, 4096), 1),
    ((3, 4097), 1),
    ((2, 33000), 1),
    ((40, 3), 0),
    ((300, 70), 0),
    ((2, 150, 5), 1),
    ((20000, 2), 0),
    ((3, 4, 5, 6), 2),
]


def sample(shape, dtype):
    n = math.prod(shape)
    if dtype == torch.bool:
        return (torch.arange(n) * 7919 % 5 == 0).reshape(shape)
    if not dtype.is_floating_point:
        return (
            (torch.arange(n) * 7919 % 97 - (0 if dtype == torch.uint8 else 48))
            .to(dtype)
            .reshape(shape)
        )
    wave = torch.sin(torch.arange(n, dtype=torch.float64) * 1.7) * 3
    return wave.reshape(shape).to(dtype)


def layouts(x):
    yield x
    if x.dim() > 1:
        yield x.transpose(0, -1).contiguous().transpose(0, -1)
        yield x.flip(0)[..., ::2]
        yield x[..., :1].expand(x.shape)


def agree(got, want, tolerance=0.0):
    assert got.dtype == want.dtype and got.shape == want.shape
    if not want.dtype.is_floating_point:
        assert torch.equal(got.cpu(), want)
        return
    assert torch.allclose(
        got.cpu().double(), want.double(), rtol=tolerance, atol=tolerance, equal_nan=True
    )


DIMS = [*SHAPES, ((4, 8, 14, 14), (0, 2, 3)), ((9, 6, 7, 7), (0, 2, 3)), ((3, 4, 5, 6), (1, 3))]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape,dim", [*DIMS, ((3, 0), 1), ((70000,), 0)])
def test_var_mean(device, shape, dim, dtype):
    x = sample(shape, dtype) + 10
    for view, there in zip(layouts(x), layouts(x.to(device)), strict=True):
        for correction in (0, 1):
            want = torch.var_mean(view, dim, correction=correction)
            got = torch.var_mean(there, dim, correction=correction)
            for a, b in zip(got, want, strict=True):
                agree(a, b, TOLERANCE[dtype])


def test_var_of_large_means(device):
    """The spread is not lost beside the mean, nor the mean where a sum would overflow."""
    x = torch.arange(5000, dtype=torch.float32) % 8 + 1e6
    agree(x.to(device).var(0), x.var(0), 1e-5)
    x = (torch.sin(torch.arange(9000.0, dtype=torch.float64)) + 3e5).to(torch.float32)
    agree(x.to(device).var(0), x.double().var(0).float(), 1e-4)
    agree(x.reshape(90, 100).to(device).var(0), x.reshape(90, 100).double().var(0).float(), 1e-4)
    x = torch.full((5000,), 3e38)
    agree(torch.var_mean(x.to(device), 0)[1], x[0], 1e-6)
    inf, nan = math.inf, math.nan
    for line in ([1.0, inf, 2.0] * 20, [1.0, nan], [inf, inf], [-inf, inf, 0.0]):
        x = torch.tensor(line)
        for a, b in zip(torch.var_mean(x.to(device), 0), torch.var_mean(x, 0), strict=True):
            agree(a, b)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(device, training):
    x = sample((6, 5, 9, 11), torch.float32) + 2
    results = []
    for where in ("cpu", device):
        mean, var = torch.zeros(5).to(where), torch.ones(5).to(where)
        y = torch.nn.functional.batch_norm(x.to(where), mean, var, training=training)
        results.append((y, mean, var))
    for want, got in zip(*results, strict=True):
        agree(got, want, 1e-5)


@pytest.mark.parametrize(
    "dtype", [*FLOATS, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool]
)
@pytest.mark.parametrize("shape,dim", SHAPES)
def test_extremes_and_where_they_are(device, shape, dim, dtype):
    x = sample(shape, dtype)
    if math.prod(shape) == 0:
        return
    if dtype.is_floating_point and x.numel() > 60:
        for at in (x.numel() // 2, x.numel() // 2 + 3):
            x.reshape(-1)[at] = math.nan
    for view, there in zip(layouts(x), layouts(x.to(device)), strict=True):
        for f in (torch.max, torch.min):
            want, got = f(view, dim), f(there, dim)
            agree(got.values, want.values)
            agree(got.indices, want.indices)
        for f in (torch.argmax, torch.argmin):
            agree(f(there), f(view))


def test_first_of_equals(device):
    x = torch.zeros(100_000).to(device)
    assert x.argmax().item() == 0 and x.argmin().item() == 0
    x[70_000] = 1
    x[90_000] = 1
    assert x.argmax().item() == 70_000
    assert x.reshape(1000, 100).argmax(0)[0].item() == 700


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape,dim", SHAPES)
def test_softmax_gradients(device, shape, dim, dtype):
    x, g = sample(shape, dtype), torch.cos(sample(shape, torch.float64)).to(dtype)
    for f in (torch.softmax, torch.log_softmax):
        results = []
        for where in ("cpu", device):
            grads = []
            for view, weight in zip(layouts(x.to(where)), layouts(g.to(where)), strict=True):
                leaf = view.detach().requires_grad_()
                f(leaf, dim).backward(weight)
                grads.append(leaf.grad)
            leaf = x.to(where).detach().requires_grad_()
            f(leaf, dim).sum().backward()  # the gradient is one number, expanded
            results.append([*grads, leaf.grad])
        for want, got in zip(*results, strict=True):
            agree(got, want, TOLERANCE[dtype] * 10)


@pytest.mark.parametrize("columns", [5, 700, 1024])
def test_many_lines(device, columns):
    """Lines that a warp has to itself."""
    x = sample((8193, columns), torch.float32)
    agree(x.to(device).var(1), x.var(1), 2e-5)
    agree(x.to(device).argmax(1), x.argmax(1))
    values, indices = x.to(device).max(1)
    agree(values, x.max(1).values)
    agree(indices, x.max(1).indices)
