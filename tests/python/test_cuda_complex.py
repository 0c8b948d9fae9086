"""Functions of complex numbers on a device against the CPU's, whose are C's: at infinities, NaN,
both zeros, and where a step on the way overflows."""

import itertools

import pytest

import tessera as torch

INF, NAN = float("inf"), float("nan")
PARTS = [0.0, -0.0, 1e-30, -1e-20, 1e-5, 0.3, -0.5, 0.7071067811865476, 1.0, -1.0, 1.0000001, -2.5]
PARTS += [10.0, -19.0, 25.0, 88.5, -90.0, 200.0, 709.5, -711.0, 1500.0, 1e5, -1e10, 1e18, 3e38]
PARTS += [-1e38, 1e160, -1.7e308, INF, -INF, NAN]
NAMES = "exp log sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh sigmoid expm1 "
NAMES += "exp2 log2 log10 log1p abs angle reciprocal rsqrt square sgn"
REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}
TOLERANCE = {torch.complex64: 3e-6, torch.complex128: 1e-13}


def numbers(parts, dtype):
    most = torch.finfo(REAL[dtype]).max
    parts = [x for x in parts if not most < abs(x) < INF]
    re, im = zip(*itertools.product(parts, parts), strict=True)
    return torch.complex(torch.tensor(re, dtype=REAL[dtype]), torch.tensor(im, dtype=REAL[dtype]))


def parts_of(x):
    return (x.real, x.imag) if x.is_complex() else (x,)


def check(got, expected, dtype, tolerance, cancels=False):
    """`cancels`: a part may be the small difference of large numbers, so both count as one."""
    assert got.dtype == expected.dtype
    largest = torch.stack([p.abs() for p in parts_of(expected)]).amax(0)
    for a, b in zip(parts_of(got), parts_of(expected), strict=True):
        assert torch.equal(a.isnan(), b.isnan())
        least = torch.finfo(REAL[dtype]).tiny
        if cancels:
            near = ((a - b).abs() <= tolerance * largest) & torch.isfinite(largest)
            a = torch.where(near, b, a)
        assert torch.allclose(a, b, tolerance, least, equal_nan=True)
        zero = (b == 0) & (a == 0)
        assert torch.equal(torch.signbit(a) & zero, torch.signbit(b) & zero)


@pytest.mark.parametrize("dtype", list(REAL))
@pytest.mark.parametrize("name", NAMES.split())
def test_of_one_number(device, name, dtype):
    x, f = numbers(PARTS, dtype), getattr(torch, name)
    cancels = name in ("sigmoid", "expm1")
    check(f(x.to(device)).cpu(), f(x), dtype, TOLERANCE[dtype], cancels)


@pytest.mark.parametrize("dtype", list(REAL))
def test_pow(device, dtype):
    parts = [0.0, -0.0, 0.3, -1.0, 2.0, 25.0, INF, -INF, NAN]
    x, y = numbers(parts, dtype), numbers(parts, dtype)
    got = torch.pow(x[:, None].to(device), y[None].to(device)).cpu()
    expected = torch.pow(x[:, None], y[None])
    for a, b in zip(parts_of(got), parts_of(expected), strict=True):
        assert torch.equal(a.isnan(), b.isnan())
    close = (got - expected).abs() <= 1e3 * TOLERANCE[dtype] * expected.abs()
    assert bool((close | (got == expected) | ~torch.isfinite(expected)).all())
    for power in (0, 0.5, 2, -1, 3, 0.3 + 0.1j):
        a, b = torch.pow(x.to(device), power).cpu(), torch.pow(x, power)
        assert torch.equal(a.isnan(), b.isnan())


@pytest.mark.parametrize("dtype", list(REAL))
def test_real_functions_at_the_ends(device, dtype):
    real = REAL[dtype]
    sizes = [
        0.0,
        1e-45,
        1e-38,
        1e-10,
        0.5,
        1.0,
        1.5,
        9.0,
        88.7,
        104.0,
        171.0,
        709.5,
        746.0,
        1e9,
        INF,
    ]
    x = torch.tensor([*sizes, *(-s for s in sizes), NAN], dtype=real)
    names = "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 "
    names += "log10 log1p erf erfc lgamma sqrt rsqrt reciprocal sigmoid floor round trunc sign"
    for name in names.split():
        f = getattr(torch, name)
        if name == "acosh":
            x = x.clamp(min=-1)
        check(f(x.to(device)).cpu(), f(x), dtype, TOLERANCE[dtype])
