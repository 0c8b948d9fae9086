"""Numbers times powers of two are exact: against Python's own, at every exponent that matters."""

import math

import pytest

import tessera as torch


def exactly(x, e, dtype):
    try:
        value = math.ldexp(x, e)
    except OverflowError:
        return math.copysign(math.inf, x)
    return torch.tensor(value, dtype=torch.float64).to(dtype).item()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_is_exact(dtype, device):
    smallest = 5e-324 if dtype == torch.float64 else torch.finfo(dtype).smallest_normal / 4
    numbers = [1.0, -1.75, 1.3, 0.0, -0.0, smallest, 3 * smallest, torch.finfo(dtype).max]
    numbers = torch.tensor(numbers, dtype=dtype).tolist()
    exponents = [
        0,
        1,
        -1,
        3,
        -24,
        127,
        128,
        150,
        200,
        270,
        -126,
        -149,
        -150,
        1023,
        -1074,
        2097,
        -2098,
    ]
    x = torch.tensor(numbers, dtype=dtype, device=device)[:, None]
    got = torch.ldexp(x, torch.tensor(exponents, device=device))
    assert got.dtype == dtype
    expected = [[exactly(n, e, dtype) for e in exponents] for n in numbers]
    assert got.tolist() == expected
    assert torch.signbit(got[4]).all()


def test_infinities_and_large_exponents(device):
    x = torch.tensor([math.inf, -math.inf, 0.0, 1.0, 1.0], device=device)
    by = torch.tensor([-5000, 5, 5000, 2**40, -(2**62)], device=device)
    assert torch.ldexp(x, by).tolist() == [math.inf, -math.inf, 0.0, math.inf, 0.0]
    assert math.isnan(torch.ldexp(torch.tensor([math.nan], device=device), by[:1]).item())


def test_dtypes_and_gradients(device):
    e = torch.tensor([2, -3], device=device)
    assert torch.ldexp(torch.tensor([3, 1], device=device), e).tolist() == [12.0, 0.125]
    assert (
        torch.ldexp(torch.ones(2, device=device), torch.full((2,), 0.5, device=device))[0] == 2**0.5
    )
    x = torch.tensor([3.0, 5.0], dtype=torch.float64, device=device, requires_grad=True)
    torch.ldexp(x, torch.tensor([200, -3], device=device)).sum().backward()
    assert x.grad.tolist() == [2.0**200, 0.125]
    y = torch.ones(2, device=device)
    y.ldexp_(e)
    assert y.tolist() == [4.0, 0.125]
