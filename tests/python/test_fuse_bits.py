"""What a compiler or an assembler knows of a value changes no bit of a fused result: constants,
signs, overflow, NaN."""

import os
import subprocess
import sys

import numpy as np
import pytest
from deferral import deferred  # noqa: F401

import tessera as torch
from tessera import fuse

CONSTANTS = {
    "sinc": lambda x: torch.sinc(x),
    "sign": lambda x: torch.sign(x),
    "heaviside": lambda x: torch.heaviside(x, torch.full_like(x, 0.5)),
    "where": lambda x: torch.where(x > 0, 0.75, x),
    "mask": lambda x: (x > 0).to(x.dtype),
    "threshold": lambda x: torch.nn.functional.threshold(x, 0.5, 0.3),
    "hardtanh": lambda x: torch.nn.functional.hardtanh(x, -0.7, 0.9),
    "truth": lambda x: same_integers(x).to(x.dtype),
    "one": lambda x: (x.to(torch.int64) ** 0).to(x.dtype),
    "power": lambda x: x**0,
    "never": lambda x: (x > x).to(x.dtype),
}


def same_integers(x):
    whole = x.to(torch.int64)
    return whole == whole


FUNCTIONS = """
exp exp2 expm1 log1p sin cos tan sinh cosh tanh atan asinh erf erfc sigmoid rsqrt lgamma digamma
""".split()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("constant", CONSTANTS)
def test_what_the_compiler_knows_of_a_value_changes_nothing(constant, dtype, device):
    # A branch of a constant lets it work out the next function itself, by other means.
    x = torch.tensor([0.0, -0.0, 0.5, -2.0, 1.0, 3.0, -0.25, 7.5], dtype=dtype, device=device)
    make = CONSTANTS[constant]
    with fuse.disabled():
        wanted = [getattr(torch, f)(make(x)).tolist() for f in FUNCTIONS]
    for name, values in zip(FUNCTIONS, wanted):
        got = getattr(torch, name)(make(x)).tolist()
        assert np.array_equal(got, values, equal_nan=True), (name, got, values)


SIGNS = {
    "itself": lambda x: torch.copysign(x, x),
    "a copy": lambda x: torch.copysign(x, x + 0.0),
    "the other": lambda x: torch.copysign(x, -x),
    "of the other": lambda x: torch.copysign(-x, x),
    "of its size": lambda x: torch.copysign(x.abs(), x),
    "twice": lambda x: torch.copysign(torch.copysign(x, -x), x),
}
AFTER_SIGNS = {
    "neg": torch.neg,
    "sigmoid": torch.sigmoid,
    "abs": torch.abs,
    "less": lambda x: 0 - x,
    "signbit": torch.signbit,
    "copysign": lambda x: torch.copysign(-x, -x),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_taken_from_a_value_itself(sign, dtype, device):
    # An assembler for GPUs took copysign(x, x), then turned, for what always has its sign set.
    x = torch.tensor([0.5, -0.5, 3.0, -7.0, 0.0, -0.0], dtype=dtype, device=device)
    for name, after in AFTER_SIGNS.items():
        with fuse.disabled():
            wanted = after(SIGNS[sign](x)).tolist()
        got = after(SIGNS[sign](x)).tolist()
        assert repr(got) == repr(wanted), (name, got, wanted)
    back = -torch.copysign(x, x)
    assert repr(back.tolist()) == repr([-v for v in x.tolist()])


def test_a_sum_of_integers_may_overflow(device):
    # A compiler that takes it for granted that none does knows that x + x is zero for zero alone.
    x = torch.tensor([7, 0, -(2**63), 2**62, -(2**62)], device=device)
    assert torch.logical_or(x + x, x + x).tolist() == [True, False, False, True, True]
    assert torch.logical_not(x * 2 + 0).tolist() == [False, True, True, False, False]
    assert ((x + x) > x).tolist() == [True, False, True, False, False]
    assert torch.logical_and(x.neg() == x, x != 0).tolist() == [False, False, True, False, False]
    assert ((x.abs() * 2) < 0).tolist() == [False, False, False, True, True]


NAN_MAKERS = {
    "sub": lambda x, y: x - y,
    "add": lambda x, y: y + x,
    "mul": lambda x, y: x * -y,
    "floor_divide": lambda x, y: torch.floor_divide(x, y),
    "fmod": lambda x, y: torch.fmod(y, x),
    "lerp": lambda x, y: torch.lerp(x, y, 0.5),
    "where": lambda x, y: torch.where(x > 0, -x, y),
    "sum": lambda x, y: (x - y).sum() + y,
    "softmax": lambda x, y: torch.softmax(-x, 0) * y,
}


REAL = [torch.float64, torch.float32, torch.float16]
NAN_CASES = [(make, dtype) for make in NAN_MAKERS for dtype in REAL]
NAN_CASES += [(make, torch.complex128) for make in ("sub", "add", "mul", "lerp", "sum")]


@pytest.mark.parametrize("make,dtype", NAN_CASES)
def test_the_bits_of_nan(make, dtype, device):
    # Two NaNs of different signs: which one a sum of doubles passes on is up to hardware.
    nan = float("nan")
    a = torch.tensor([nan, -1.0, nan, 2.0, nan], dtype=torch.float64).to(device)
    minus = torch.tensor(-1.0, dtype=torch.float64, device=device)
    x, y = torch.copysign(a, minus), a.flip(0)
    if dtype.is_complex:
        x, y = torch.complex(x, y), torch.complex(y, -x)
    else:
        x, y = x.to(dtype), y.to(dtype)
    f = NAN_MAKERS[make]

    def bits():
        z = f(x, y)
        more = (-z + x * 2).abs() if not dtype.is_complex else -z + x * 2
        both = [torch.view_as_real(t) if dtype.is_complex else t for t in (z, more)]
        return [t.cpu().contiguous().view(torch.uint8).tolist() for t in both]

    with fuse.disabled():
        wanted = bits()
    assert bits() == wanted


SPECIAL = (
    "erfcx i0 i0e i1 i1e digamma spherical_bessel_j0 bessel_j0 bessel_y1 ndtri log_ndtr".split()
)


@pytest.mark.parametrize("name", SPECIAL)
def test_the_bits_of_nan_in_special_functions(name, device):
    # A path on which the argument is passed on, and an assembler that drops the operator before it.
    nan = float("nan")
    x = torch.tensor([nan, 0.5, nan, -1.5, 2.0], device=device)
    x = torch.copysign(x, torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0], device=device))

    def bits(before):
        return getattr(torch.special, name)(before(x)).cpu().view(torch.int32).tolist()

    for before in (torch.abs, torch.neg, torch.relu):
        with fuse.disabled():
            wanted = bits(before)
        assert bits(before) == wanted


def test_all_of_it_where_groups_are_compiled(compiles):
    # With a pack of kernels a group that is met for the first time is interpreted.
    if "TESSERA_EMULATOR" in os.environ or os.environ.get("TESSERA_INTERPRET") == "0":
        pytest.skip("all of it has been compiled")
    env = {k: v for k, v in os.environ.items() if k != "TEST_PART"} | {"TESSERA_INTERPRET": "0"}
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(tests, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
