"""Special functions where their samples do not reach: far out and close to zero."""

import math

import pytest

import tessera as torch

S = torch.special


def at(function, x):
    return function(torch.tensor(x, dtype=torch.float64)).item()


@pytest.mark.parametrize("x", [300.0, 1e4, 1e8, 1e300])
def test_scaled_bessel_functions_of_large_numbers(x):
    # exp(x) K(x) is sqrt(pi / 2x) (1 + (4 n^2 - 1) / 8x + ...), exp(-x) I(x) that over pi.
    front = math.sqrt(math.pi / 2 / x)
    second = 9 / (128 * x * x)
    assert at(S.scaled_modified_bessel_k0, x) == pytest.approx(
        front * (1 - 1 / (8 * x) + second), rel=1e-8
    )
    assert at(S.scaled_modified_bessel_k1, x) == pytest.approx(
        front * (1 + 3 / (8 * x) - 15 / (128 * x * x)), rel=1e-8
    )
    assert at(S.i0e, x) == pytest.approx(front / math.pi * (1 + 1 / (8 * x) + second), rel=1e-8)


@pytest.mark.parametrize("x", [39.0, 40.0, 41.0])
def test_where_the_expansion_begins(x):
    # K1(x) I0(x) + K0(x) I1(x) = 1 / x
    product = at(S.scaled_modified_bessel_k1, x) * at(S.i0e, x)
    product += at(S.scaled_modified_bessel_k0, x) * at(S.i1e, x)
    assert product * x == pytest.approx(1, rel=1e-14)


def test_zeta_far_out():
    assert at(lambda x: S.zeta(x, 1.0), math.inf) == 1
    assert at(lambda x: torch.polygamma(1, x), math.inf) == 0
    assert at(lambda x: torch.polygamma(1, x), 1e200) == pytest.approx(1e-200)
    assert at(lambda x: torch.polygamma(3, x), 1e90) == pytest.approx(2e-270)


def test_bessel_functions_of_tiny_numbers():
    for x in (1e-12, 1e-20, 1e-300):
        euler = 0.5772156649015329
        assert at(S.modified_bessel_k0, x) == pytest.approx(-math.log(x / 2) - euler, rel=1e-13)
        assert at(S.modified_bessel_k1, x) == pytest.approx(1 / x, rel=1e-13)
    assert at(S.modified_bessel_k0, 0.0) == math.inf
    assert math.isnan(at(S.modified_bessel_k0, -1.0))
    assert at(S.scaled_modified_bessel_k0, math.inf) == 0
