"""Functions of float that the CPU computes a short way where a whole tile may go it: an element's
bits are its own, whatever its neighbours are, and they are right."""

import math
import random
import struct

import pytest

import tessera as torch

ONE = ["sin", "cos", "tan", "erfc", "erfinv", "i0", "lgamma", "digamma", "sinc", "special.ndtri"]
BESSEL = ["i0e", "i1", "i1e", "modified_bessel_k0", "modified_bessel_k1"]
BESSEL += ["scaled_modified_bessel_k0", "scaled_modified_bessel_k1"]
ONE += ["special." + name for name in BESSEL]
TWO = ["fmod", "remainder", "floor_divide", "atan2", "hypot", "pow"]


def numbers(count, seed):
    """Of all sizes, from the smallest up to the largest, and what is not finite."""
    of = random.Random(seed)
    values = [struct.unpack("f", struct.pack("I", of.getrandbits(32)))[0] for _ in range(count)]
    return values + [0.0, -0.0, 1.0, 2.0, math.inf, -math.inf, math.nan, 1e-45, 1048576.0, 3.4e38]


def function(name):
    return getattr(torch.special, name[8:]) if name.startswith("special.") else getattr(torch, name)


def bits(tensor):
    nan = 0x7FC00000
    words = tensor.view(torch.int64 if tensor.dtype == torch.float64 else torch.int32).tolist()
    return [nan if math.isnan(x) else w for x, w in zip(tensor.tolist(), words)]


@pytest.mark.parametrize(
    "name, dtype",
    [(name, torch.float32) for name in ONE + TWO]
    + [(name, torch.float64) for name in TWO + ["sin", "cos"]],
)
def test_an_elements_bits_do_not_depend_on_its_neighbours(name, dtype):
    of = function(name)
    count = 1 if name in ONE else 2
    near = random.Random(7)
    columns = [
        torch.tensor(
            numbers(600, 3 + k) + [near.uniform(0.1, 0.9) for _ in range(600)], dtype=dtype
        )
        for k in range(count)
    ]
    together = bits(of(*columns))
    alone = []
    for i in range(len(together)):
        alone += bits(of(*(c[i : i + 1].clone() for c in columns)))
    assert together == alone


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_remainders_are_exact_for_every_quotient(dtype):
    a, b = numbers(20000, 1), numbers(20000, 2)
    b = [y if k % 2 else x * (0.001 + k / 30000) for k, (x, y) in enumerate(zip(a, b))]
    pairs = [(x, y) for x, y in zip(a, b) if math.isfinite(x) and y != 0 and not math.isnan(y)]
    if dtype == torch.float64:  # more digits than float has
        pairs = [(x * 1.2345678901234567, y * 0.9876543210987654) for x, y in pairs]
        pairs += [(x * 1e250, y * 1e250) for x, y in pairs] + [(x * 1e-290, y) for x, y in pairs]
    x = torch.tensor([p[0] for p in pairs], dtype=dtype)
    y = torch.tensor([p[1] for p in pairs], dtype=dtype)
    keep = (y != 0) & torch.isfinite(x)
    x, y = x[keep], y[keep]
    got = torch.fmod(x, y).tolist()
    want = [math.fmod(p, q) for p, q in zip(x.tolist(), y.tolist())]
    assert [struct.pack("d", v) for v in got] == [struct.pack("d", v) for v in want]


@pytest.mark.parametrize("name", ONE)
def test_float_is_doubles_rounded_but_for_a_few_places(name):
    of = random.Random(5)
    last = {"erfinv": 1.0, "i0": 91.0, "special.i1": 91.0, "erfc": 9.0, "sinc": 0.5}.get(name, 50.0)
    x = torch.tensor([of.uniform(-last, last) for _ in range(5000)] + [last / 2, -0.0, 1e-30])
    x = torch.cat([x, x * 1e-3, x * 1e-20])
    if name == "special.ndtri" or "_k" in name:
        x = x.abs() / (50 if name == "special.ndtri" else 1)
    got, want = function(name)(x), function(name)(x.double())
    assert torch.equal(torch.isnan(want), torch.isnan(got))
    off = (got.double() - want).abs()
    # A unit in the last place of float, and what float has left where it is smallest.
    assert bool((off <= want.abs() * (6 * 2.0**-24) + 1e-44)[torch.isfinite(want)].all())
    assert torch.equal(torch.isinf(want), torch.isinf(got))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_where_results_are_exact(dtype):
    inf = math.inf

    def numbers(*values):
        return torch.tensor(values, dtype=dtype)

    assert torch.lgamma(numbers(1.0, 2.0, 0.0, -0.0, -3.0, inf, -inf)).tolist() == [
        0.0, 0.0, inf, inf, inf, inf, inf,
    ]  # fmt: skip
    assert torch.i0(numbers(0.0, -0.0, inf, -inf)).tolist() == [1.0, 1.0, inf, inf]
    assert torch.special.i1(numbers(0.0, inf, -inf)).tolist() == [0.0, inf, -inf]
    assert torch.special.i0e(numbers(0.0, inf, -inf)).tolist() == [1.0, 0.0, 0.0]
    assert torch.special.modified_bessel_k0(numbers(0.0, inf)).tolist() == [inf, 0.0]
    assert torch.special.scaled_modified_bessel_k1(numbers(0.0, inf)).tolist() == [inf, 0.0]
    assert torch.special.ndtri(numbers(0.0, 0.5, 1.0)).tolist() == [-inf, 0.0, inf]
    assert torch.digamma(numbers(0.0, -0.0, inf)).tolist() == [-inf, inf, inf]
    assert torch.isnan(torch.digamma(numbers(-1.0, -1e9, -inf, math.nan))).all()
    assert torch.erfinv(numbers(1.0, -1.0, 0.0)).tolist() == [inf, -inf, 0.0]
    assert torch.isnan(torch.erfinv(numbers(1.5, -1.5, math.nan))).all()
    assert torch.erfc(numbers(inf, -inf, 0.0)).tolist() == [0.0, 2.0, 1.0]
    assert torch.hypot(numbers(inf), numbers(math.nan)).tolist() == [inf]
    zeros = numbers(0.0, 0.0, -0.0, -0.0)
    sides = numbers(0.0, -0.0, 0.0, -0.0)
    want = [math.atan2(y, x) for y, x in zip(zeros.tolist(), sides.tolist())]
    got = torch.atan2(zeros, sides).tolist()
    assert [math.copysign(1, v) for v in got] == [math.copysign(1, v) for v in want]
    assert got == pytest.approx(want)


@pytest.mark.parametrize("name", ["sin", "cos", "atan", "expm1", "log1p", "exp2", "atan2", "hypot"])
def test_double_is_libms_but_for_a_few_places(name):
    of = random.Random(9)
    x = [of.uniform(-0.99, 20) for _ in range(3000)] + [of.uniform(0, 1) ** 40 for _ in range(500)]
    x += [of.uniform(-0.9, 1e7) for _ in range(500)] if name not in ("expm1", "exp2") else []
    y = [of.uniform(-20, 20) for _ in x]
    two = name in ("atan2", "hypot")
    at = (torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64))
    got = getattr(torch, name)(*at[: 1 + two]).tolist()
    of_libm = (lambda v: 2.0**v) if name == "exp2" else getattr(math, name)
    for i, value in enumerate(got):
        want = of_libm(x[i], y[i]) if two else of_libm(x[i])
        assert abs(value - want) <= 3 * math.ulp(want), (x[i], y[i], value, want)
