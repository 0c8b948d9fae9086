"""On the CPU a NaN's bits do not depend on where its element stands in a loop: fused and unfused
cut loops at other places."""

import pytest

import tessera as torch
from tessera.nn import functional as F

FUNCTIONS = {
    "add": lambda a, b: a + b,
    "addcmul": lambda a, b: torch.addcmul(a, b, a, value=0.5),
    "hypot": torch.hypot,
    "mish": lambda a, b: F.mish(torch.addcmul(a, a, b, value=0.5)),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "atan2": torch.atan2,
    "logaddexp": torch.logaddexp,
}


def bits(x):
    return x.contiguous().view(torch.int64 if x.dtype == torch.float64 else torch.int32).tolist()


def operands(dtype, n):
    """Both signs of NaN and of infinity, and numbers, each beside each."""
    nan = torch.tensor(float("nan"), dtype=dtype)
    values = torch.stack([nan, -nan, *(torch.tensor(v, dtype=dtype) for v in
                          (1.5, -2.0, 0.0, float("inf"), -float("inf")))])  # fmt: skip
    i = torch.arange(n)
    return values[i % 7], values[(i // 7 + i) % 7]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_wherever_it_stands(name, dtype):
    f = FUNCTIONS[name]
    a, b = operands(dtype, 147)
    assert {bits(a[:1])[0], bits(a[1:2])[0]} == set(bits(a[:2])) and bits(a[:1]) != bits(a[1:2])
    whole = bits(f(a, b))
    for first, end in ((0, 1), (3, 22), (5, 69), (64, 147), (100, 147)):
        assert bits(f(a[first:end].clone(), b[first:end].clone())) == whole[first:end]
    assert [bits(f(a[i : i + 1].clone(), b[i : i + 1].clone()))[0] for i in range(147)] == whole


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_of_several_in_a_reduction_one_is_left(dtype):
    a, b = operands(dtype, 147)
    for x in (a, b, -a, a.flip(0)):
        for f in (torch.sum, torch.mean, torch.prod, torch.var, torch.amax):
            assert bits(f(x).reshape(1)) == bits(torch.tensor([float("nan")], dtype=dtype)), f
