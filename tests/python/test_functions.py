"""Functions of one number in float32, against NumPy in float64: errors in units of last place."""

import math

import numpy as np
import pytest

import tessera as torch

# Name, NumPy's function, interval, allowed error.
CASES = [
    ("exp", np.exp, (-87, 88), 1.1),
    ("exp2", np.exp2, (-126, 128), 1.5),
    ("expm1", np.expm1, (-20, 88), 1.7),
    ("expm1", np.expm1, (-0.5, 0.5), 1.7),
    ("log", np.log, (1e-30, 10), 1.1),
    ("log2", np.log2, (1e-30, 10), 1.1),
    ("log10", np.log10, (1e-30, 10), 1.1),
    ("log1p", np.log1p, (-0.999, 10), 1.1),
    ("log1p", np.log1p, (-1e-3, 1e-3), 1.1),
    ("sin", np.sin, (-10, 10), 1.6),
    ("sin", np.sin, (-1e30, 1e30), 1.6),
    ("cos", np.cos, (-10, 10), 1.6),
    ("cos", np.cos, (-1e6, 1e6), 1.6),
    ("tan", np.tan, (-10, 10), 2.7),
    ("asin", np.arcsin, (-1, 1), 2.7),
    ("acos", np.arccos, (-1, 1), 1.5),
    ("atan", np.arctan, (-20, 20), 2.0),
    ("sinh", np.sinh, (-88, 88), 2.2),
    ("sinh", np.sinh, (-0.5, 0.5), 2.2),
    ("cosh", np.cosh, (-88, 88), 1.5),
    ("tanh", np.tanh, (-10, 10), 1.5),
    ("tanh", np.tanh, (-0.7, 0.7), 1.5),
    ("asinh", np.arcsinh, (-10, 10), 1.8),
    ("acosh", np.arccosh, (1, 10), 2.1),
    ("atanh", np.arctanh, (-0.999, 0.999), 2.1),
    ("erf", np.vectorize(math.erf), (-4.5, 4.5), 5.5),
]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, math.inf, -math.inf, math.nan, 1e-42, -1e-42, 3e38]


def distance(actual, expected):
    """The largest error; elements whose float32 is not finite must agree as they are."""
    with np.errstate(over="ignore"):
        rounded = expected.astype(np.float32)
    finite = np.isfinite(rounded)
    same = (actual == rounded) | (np.isnan(actual) & np.isnan(rounded))
    # Where the exact result is just past the largest number either side may round away.
    edge = np.abs(expected) > 3.4028e38
    assert (same | finite | edge).all()
    ulp = np.spacing(np.abs(rounded[finite]))
    return (np.abs(actual[finite].astype(np.float64) - expected[finite]) / ulp).max()


@pytest.mark.parametrize("name, exact, interval, allowed", CASES)
def test_error(name, exact, interval, allowed, device):
    if device != "cpu":
        pytest.skip("other devices have functions of their own")
    x = np.random.default_rng(5).uniform(*interval, 50_000).astype(np.float32)
    y = getattr(torch, name)(torch.from_numpy(x)).numpy()
    assert distance(y, exact(x.astype(np.float64))) <= allowed


@pytest.mark.parametrize("name, exact", sorted({(c[0], c[1]) for c in CASES}, key=lambda c: c[0]))
def test_special_numbers(name, exact, device):
    x = np.array(SPECIAL, np.float32)
    y = getattr(torch, name)(torch.from_numpy(x).to(device)).cpu().numpy()
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.float64)).astype(np.float32)
    for given, a, b in zip(SPECIAL, y, expected):
        if not np.isfinite(b) or b == 0:
            assert (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b)), (
                given
            )


def test_pow(device):
    x, y = (
        v.ravel().astype(np.float32)
        for v in np.meshgrid(SPECIAL + [0.5, -3, 3], SPECIAL + [0.5, -3, 3])
    )
    got = torch.pow(torch.from_numpy(x).to(device), torch.from_numpy(y).to(device)).cpu().numpy()
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    for a, b, g, e in zip(x, y, got, expected):
        if not np.isfinite(e) or e == 0 or abs(e) == 1:
            assert (g != g and e != e) or (g == e and math.copysign(1, g) == math.copysign(1, e)), (
                a,
                b,
            )
    x = np.exp(np.random.default_rng(6).uniform(-30, 30, 50_000)).astype(np.float32)
    y = np.random.default_rng(7).uniform(-3, 3, 50_000).astype(np.float32)
    got = torch.pow(torch.from_numpy(x).to(device), torch.from_numpy(y).to(device)).cpu().numpy()
    limit = 0.6 if device == "cpu" else 10
    assert distance(got, np.power(x.astype(np.float64), y.astype(np.float64))) <= limit
