"""Special functions on a device against the CPU's, over their ranges and at the ends of them."""

import itertools

import pytest

import tessera as torch

special = torch.special
UNARY = [
    torch.i0,
    torch.digamma,
    torch.erfinv,
    torch.lgamma,
    special.airy_ai,
    special.bessel_j0,
    special.bessel_j1,
    special.bessel_y0,
    special.bessel_y1,
    special.entr,
    special.erfcx,
    special.i0e,
    special.i1,
    special.i1e,
    special.log_ndtr,
    special.modified_bessel_i0,
    special.modified_bessel_i1,
    special.modified_bessel_k0,
    special.modified_bessel_k1,
    special.ndtr,
    special.ndtri,
    special.scaled_modified_bessel_k0,
    special.scaled_modified_bessel_k1,
    special.spherical_bessel_j0,
]
POLYNOMIALS = [
    special.chebyshev_polynomial_t,
    special.chebyshev_polynomial_u,
    special.chebyshev_polynomial_v,
    special.chebyshev_polynomial_w,
    special.shifted_chebyshev_polynomial_t,
    special.shifted_chebyshev_polynomial_u,
    special.shifted_chebyshev_polynomial_v,
    special.shifted_chebyshev_polynomial_w,
    special.hermite_polynomial_h,
    special.hermite_polynomial_he,
    special.laguerre_polynomial_l,
    special.legendre_polynomial_p,
]
ENDS = [0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan"), 1e-30, -1e-30, 1e30, -1e30]
SIZES = [0.01, 0.3, 0.5, 0.999, 1.5, 2.0, 4.7, 9.3, 27.0, 60.0, 710.0]


def numbers(dtype):
    return torch.tensor(ENDS + SIZES + [-x for x in SIZES], dtype=dtype)


def compare(f, tensors, device, tolerance):
    got, expected = f(*(t.to(device) for t in tensors)).cpu(), f(*tensors)
    assert got.dtype == expected.dtype
    assert torch.equal(got.isnan(), expected.isnan())
    assert torch.allclose(got.double(), expected.double(), tolerance, 1e-300, equal_nan=True)


# A device has its own sine and cosine: Bessel functions of large numbers lose digits to either.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10, torch.bfloat16: 1e-2}


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("f", UNARY, ids=lambda f: f.__name__)
def test_of_one_number(device, f, dtype):
    compare(f, [numbers(dtype)], device, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("f", POLYNOMIALS, ids=lambda f: f.__name__)
def test_polynomials(device, f, dtype):
    x = torch.tensor([*ENDS[:9], *SIZES[:6]], dtype=dtype)
    degree = torch.tensor(
        [0.0, 1, 2, 5, 9, 20, 600, -1, -5, float("inf"), float("nan")], dtype=dtype
    )
    compare(f, [x[:, None], degree[None]], device, TOLERANCE[dtype] * 100)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("f", [torch.igamma, torch.igammac, special.zeta], ids=lambda f: f.__name__)
def test_of_two_numbers(device, f, dtype):
    pairs = list(itertools.product([*ENDS[:9], *SIZES], repeat=2))
    a, b = (torch.tensor(x, dtype=dtype) for x in zip(*pairs, strict=True))
    compare(f, [a, b], device, TOLERANCE[dtype] * 10)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma(device, n):
    compare(lambda x: torch.polygamma(n, x), [numbers(torch.float64)[11:]], device, 1e-11)


def test_gradients(device):
    for f in (torch.i0, special.i1, special.i0e, special.i1e, torch.digamma, torch.erfinv):
        grads = []
        for where in (device, "cpu"):
            x = torch.tensor(
                [0.2, -0.4, 0.7], dtype=torch.float64, device=where, requires_grad=True
            )
            f(x).sum().backward()
            grads.append(x.grad.cpu())
        assert torch.allclose(*grads, 1e-10)


def test_in_a_group(device):
    """With others before and behind, and two of them."""
    x = torch.linspace(0.1, 0.8, 100)
    f = lambda x: torch.erfinv(x * 0.5 + 0.1).exp() - torch.i0(x) * special.entr(x)  # noqa: E731
    compare(f, [x], device, 1e-5)
