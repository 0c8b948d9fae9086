"""Interpolation, sampling at a grid and distances on a device against the CPU's."""

import itertools

import pytest

import tessera as torch
import tessera.nn.functional as F

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12, torch.float16: 4e-3, torch.bfloat16: 3e-2}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def compare(f, tensors, device):
    """The result and the gradients of f on the device are the CPU's."""
    tolerance = TOLERANCE[tensors[0].dtype]
    answers = []
    for where in (device, "cpu"):
        here = [t.to(where).requires_grad_() for t in tensors]
        y = f(*here)
        g = (torch.arange(y.numel()).reshape(y.shape) % 13 - 6).to(y.dtype).to(where)
        answers.append([y.detach(), *torch.autograd.grad(y, here, g)])
    for got, expected in zip(*answers, strict=True):
        assert got.dtype == expected.dtype and got.shape == expected.shape
        got, expected = got.cpu().double(), expected.double()
        assert torch.allclose(got, expected, tolerance, tolerance * 10, equal_nan=True)


MODES = {3: ["nearest", "linear"], 4: ["nearest-exact", "bilinear", "bicubic"], 5: ["trilinear"]}


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize(("dim", "mode"), [(d, m) for d in MODES for m in MODES[d]])
def test_interpolate(device, dtype, dim, mode):
    x = torch.randn(2, 3, *(7, 6, 5)[: dim - 2]).to(dtype)
    for size in ((11, 4, 9)[: dim - 2], (1, 1, 1)[: dim - 2]):
        compare(lambda x, size=size: F.interpolate(x, size, mode=mode), [x], device)
    scale = (1.7, 0.6, 2.0)[: dim - 2]
    compare(lambda x: F.interpolate(x, scale_factor=scale, mode=mode), [x], device)
    if "linear" in mode or "cubic" in mode:
        f = lambda x: F.interpolate(x, scale_factor=scale, mode=mode, align_corners=True)  # noqa: E731
        compare(f, [x], device)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialias(device, mode):
    x = torch.randn(2, 2, 40, 33)
    f = lambda x: F.interpolate(x.transpose(2, 3), (7, 50), mode=mode, antialias=True)  # noqa: E731
    compare(f, [x], device)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(device, dtype, padding):
    # Places away from the kinks between elements, for halves too.
    places = (torch.randint(-40, 40, (2, 9, 5, 2)) * 8 + 3) / 256
    x = torch.randn(2, 11, 8, 4)
    for mode, align in itertools.product(("bilinear", "bicubic", "nearest"), (False, True)):
        f = lambda x, g, mode=mode, align=align: F.grid_sample(x, g, mode, padding, align)  # noqa: E731
        compare(f, [x.to(dtype), places.to(dtype)], device)
    x, places = torch.randn(2, 3, 4, 8, 2), (torch.randint(-40, 40, (2, 3, 4, 2, 3)) * 8 + 3) / 256
    for mode in ("bilinear", "nearest"):
        f = lambda x, g, mode=mode: F.grid_sample(x, g, mode, padding, False)  # noqa: E731
        compare(f, [x.to(dtype), places.to(dtype)], device)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_places_that_are_no_place(device, padding):
    x = torch.arange(12.0).reshape(1, 1, 3, 4)
    numbers = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 0.3]
    grid = torch.tensor(list(itertools.product(numbers, numbers))).reshape(1, 6, 6, 2)
    for mode in ("bilinear", "nearest", "bicubic"):
        f = lambda t, mode=mode: F.grid_sample(x.to(t.device), t, mode, padding, False)  # noqa: E731
        got, expected = f(grid.to(device)).cpu(), f(grid)
        assert torch.equal(got.isnan(), expected.isnan())
        assert torch.allclose(got, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, float("inf")])
def test_distances(device, dtype, p):
    for a, b in [
        ((3, 4), (5, 4)),
        ((40, 17), (35, 17)),
        ((2, 3, 33), (2, 1, 33)),
        ((2, 700), (3, 700)),
    ]:
        a, b = torch.randn(*a, dtype=dtype), torch.randn(*b, dtype=dtype)
        compare(lambda a, b: torch.cdist(a, b, p), [a, b], device)
    x = torch.tensor([[1.0, 2.0], [1.0, 2.0], [float("nan"), 0.0], [1.0, -3.0]], dtype=dtype)
    compare(lambda x: torch.cdist(x, x[:2], p), [x], device)
    compare(lambda x: torch.cdist(x.t(), x[:, :1].t() * 2, p), [x], device)
