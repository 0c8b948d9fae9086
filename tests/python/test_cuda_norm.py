"""Norms on a device against the CPU's: every way their kernels share rows between threads."""

import pytest

import tessera as torch
import tessera.nn.functional as F

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.float16: 3e-3, torch.bfloat16: 2e-2}
DTYPES = list(TOLERANCE)


def close(a, b, dtype):
    a, b = a.cpu().double(), b.double()
    scale = b.abs().max() + b.abs() + 0.1
    return bool(((a - b).abs() / scale).max() < TOLERANCE[dtype])


def compare(f, tensors, device, grads=True):
    """The result and the gradients of f on the device are the CPU's."""
    dtype = tensors[0].dtype
    answers = []
    for where in (device, "cpu"):
        here = [t.to(where).requires_grad_(grads) for t in tensors]
        y = f(*here)
        g = (torch.arange(y.numel()).reshape(y.shape) % 13 - 6).to(y.dtype).to(where)
        answers.append([y.detach(), *(torch.autograd.grad(y, here, g) if grads else ())])
    for got, expected in zip(*answers, strict=True):
        assert got.dtype == expected.dtype and got.shape == expected.shape
        assert close(got, expected, dtype)


def random(*shape, dtype, offset=1.0):
    return (torch.randn(*shape) * 2 + offset).to(dtype)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "n"), [(3, 7), (70, 64), (9, 100), (7, 1000), (3, 4096), (2, 8196), (2, 20000)]
)
def test_rows(device, dtype, rows, n):
    x = random(rows, n, dtype=dtype)
    w, b = random(n, dtype=dtype), random(n, dtype=dtype)
    compare(lambda x, w, b: F.layer_norm(x, (n,), w, b), [x, w, b], device)
    compare(lambda x: F.layer_norm(x, (n,)), [x], device)
    compare(lambda x, w: F.rms_norm(x, (n,), w), [x, w], device)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 6, 3, 3), (2, 4, 8, 8), (1, 2, 150, 128), (20, 6)])
def test_groups(device, dtype, shape):
    x = random(*shape, dtype=dtype)
    w, b = random(shape[1], dtype=dtype), random(shape[1], dtype=dtype)
    compare(lambda x, w, b: F.group_norm(x, 2, w, b), [x, w, b], device)
    compare(lambda x: F.group_norm(x, 2), [x], device)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "shape", [(300, 64), (5, 3), (4, 3, 7), (4, 8, 5, 6), (1, 2, 200, 100), (2, 3, 4, 4, 2)]
)
def test_batches(device, dtype, training, shape):
    channels = shape[1]
    x = random(*shape, dtype=dtype)
    w, b = random(channels, dtype=dtype), random(channels, dtype=dtype)
    mean, var = torch.randn(channels).to(dtype), (torch.rand(channels) + 0.5).to(dtype)

    def f(x, w=None, b=None):
        here = mean.to(x.device), var.to(x.device)
        return F.batch_norm(x, *here, w, b, training)

    compare(f, [x, w, b], device)
    compare(f, [x], device)


@pytest.mark.parametrize("training", [True, False])
def test_layouts(device, training):
    """Channels last, a transposed view with an offset, and a gradient that is one number."""
    x, w = random(3, 8, 16, 18, dtype=torch.float32), random(8, dtype=torch.float32)
    mean, var = torch.zeros(8), torch.ones(8)

    def norm(x, w):
        here = mean.to(x.device), var.to(x.device)
        return F.batch_norm(x, *here, w, None, training)

    last = torch.channels_last
    compare(lambda x, w: norm(x.to(memory_format=last), w).to(memory_format=last), [x, w], device)
    compare(lambda x, w: norm(x, w).permute(0, 2, 3, 1), [x, w], device)
    compare(lambda x, w: norm(x.to(memory_format=last), w).permute(0, 2, 3, 1), [x, w], device)
    compare(lambda x, w: norm(x.permute(0, 1, 3, 2)[:, :, 1:], w) * 2, [x, w], device)
    compare(lambda x, w: norm(x, w).sum(-1), [x, w], device)
    compare(lambda x, w: F.group_norm(x[:, :, 1:].transpose(2, 3), 4, w), [x, w], device)
    compare(lambda x, w: F.layer_norm(x.permute(0, 2, 3, 1)[:, 1:], (8,), w[::1]), [x, w], device)
    wide = random(15, 17, dtype=torch.float32)
    compare(lambda x: F.layer_norm(x[1:, 1:], (16,)), [wide], device)
    compare(lambda x: F.layer_norm(x.expand(4, 15, 17), (17,)), [wide], device)


def test_weights_of_another_dtype(device):
    x, w = random(5, 64, dtype=torch.bfloat16), torch.randn(64)
    y = F.layer_norm(x.to(device).float(), (64,), w.to(device))
    assert close(y, F.layer_norm(x.float(), (64,), w), torch.float32)
    n = torch.nn.BatchNorm1d(64)
    n.weight.data.copy_(w)
    expected = n(x)
    n.reset_running_stats()
    assert close(n.to(device)(x.to(device)), expected, torch.bfloat16)


def test_numbers_at_the_ends(device):
    """Squares beyond float, deviations that hardly are, infinities and NaN."""
    big = [[1e30, 2e30, 3e30, -1e30], [1e-25, 2e-25, 3e-25, 0.0], [1.0, 1.0, 1.0, 1.0]]
    odd = [[float("inf"), 1.0, 2.0, 3.0], [float("nan"), 1.0, 2.0, 3.0]]
    x = torch.tensor(big + odd)
    for eps in (1e-5, 1e-44):
        got, expected = (F.layer_norm(t, (4,), eps=eps).cpu() for t in (x.to(device), x))
        assert torch.allclose(got, expected, 1e-5, 0, equal_nan=True)
    long = torch.full((2, 20000), 1e30)
    long[:, ::2] = -1e30
    got, expected = (F.layer_norm(t, (20000,)).cpu() for t in (long.to(device), long))
    assert torch.allclose(got, expected, 1e-5)
    shifted = torch.randn(3, 5000) + 1e4
    got, expected = (F.layer_norm(t, (5000,)).cpu() for t in (shifted.to(device), shifted))
    assert torch.allclose(got, expected, 1e-3, 1e-3)


def test_no_elements(device):
    assert F.layer_norm(torch.empty(0, 4, device=device), (4,)).shape == (0, 4)
    x = torch.empty(0, 4, device=device, requires_grad=True)
    w = torch.ones(4, device=device, requires_grad=True)
    F.layer_norm(x, (4,), w).sum().backward()
    assert w.grad.tolist() == [0, 0, 0, 0]
