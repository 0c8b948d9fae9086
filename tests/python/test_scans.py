"""cumsum, cumprod, cummax, cummin, logcumsumexp and trapezoids against NumPy."""

import numpy as np
import pytest

import tessera as torch

PLACES = [
    ((9,), 0),
    ((40000,), 0),
    ((5, 300), 1),
    ((300, 5), 0),
    ((3, 40, 7), 1),
    ((2, 30, 300), 1),
    ((6, 20000), 1),
]


def array(t):
    return np.array(t.to(torch.float64).tolist()).reshape(tuple(t.shape))


def turned(x, dim):
    yield x, dim
    if x.dim() == 2:
        yield x.t(), 1 - dim


@pytest.mark.parametrize("shape, dim", PLACES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_cumsum_of_floats(dtype, shape, dim):
    torch.manual_seed(0)
    given = torch.randn(shape).to(getattr(torch, dtype))
    bound = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-7, "float64": 1e-13}[dtype]
    for x, d in turned(given, dim):
        got = torch.cumsum(x, d)
        want = np.cumsum(array(x), d)
        assert got.dtype == x.dtype
        # Accumulated in more digits: off by the rounding of the result alone.
        assert (np.abs(array(got) - want) <= bound * (np.abs(want) + 1e-2)).all()


@pytest.mark.parametrize("shape, dim", PLACES)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_cumsum_of_integers(dtype, shape, dim):
    numbers = np.random.default_rng(0).integers(0, 5, shape)
    given = torch.tensor(numbers.tolist()).to(getattr(torch, dtype))
    for x, d in turned(given, dim):
        got = torch.cumsum(x, d)
        assert got.dtype == torch.int64
        assert (array(got) == np.cumsum(array(x), d)).all()
        small = torch.cumsum(x, d, dtype=torch.int32)
        assert small.dtype == torch.int32 and small.tolist() == got.tolist()


@pytest.mark.parametrize("shape, dim", PLACES)
def test_reverse(shape, dim):
    torch.manual_seed(0)
    for x, d in turned(torch.randn(shape, dtype=torch.float64), dim):
        y = x.detach().requires_grad_()
        weights = torch.randn(x.shape, dtype=torch.float64)
        (torch.cumsum(y, d) * weights).sum().backward()
        want = np.flip(np.cumsum(np.flip(array(weights), d), d), d)
        assert np.allclose(array(y.grad), want, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_extremes(dtype):
    numbers = np.random.default_rng(0).integers(-9, 9, (50, 60))
    x = torch.tensor(numbers.tolist()).to(getattr(torch, dtype))
    for y, d in ((x, 0), (x, 1), (x.t(), 0), (x.t(), 1)):
        a = array(y)
        for function, scan, at_least in (
            (np.maximum, torch.cummax, np.greater_equal),
            (np.minimum, torch.cummin, np.less_equal),
        ):
            got = scan(y, d)
            want = function.accumulate(a, d)
            assert (array(got.values) == want).all()
            at = array(got.indices).astype(int)
            assert (np.take_along_axis(a, at, d) == want).all()
            # The last place that reaches it.
            count = np.arange(a.shape[d]).reshape([-1, 1] if d == 0 else [1, -1])
            reached = np.where(at_least(a, want), count, -1)
            assert (at == np.maximum.accumulate(reached, d)).all()


def test_one_infinity_does_not_spoil_what_is_before():
    inf = float("inf")
    x = torch.tensor([1.0, 2.0, inf, 1.0, -inf, 1.0])
    assert str(torch.cumsum(x, 0).tolist()) == "[1.0, 3.0, inf, inf, nan, nan]"
    assert str(torch.logcumsumexp(torch.tensor([-inf, -inf, 0.0, inf]), 0).tolist()) == (
        "[-inf, -inf, 0.0, inf]"
    )


def test_cumprod_gradient_with_zeros():
    """Against the sum over products, one by one."""
    for data in ([2.0, 0.0, 3.0, 4.0], [0.0, 0.0, 5.0], [2.0, 3.0], [0.0]):
        x = torch.tensor(data, dtype=torch.float64, requires_grad=True)
        torch.cumprod(x, 0).sum().backward()
        for k in range(len(data)):
            want = 0.0
            for i in range(k, len(data)):
                want += float(np.prod([data[j] for j in range(i + 1) if j != k]))
            assert x.grad[k].item() == pytest.approx(want)


def test_second_derivatives():
    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64)
    x[1, 2] = 0.0
    check = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    for scan in (torch.cumsum, torch.cumprod, torch.logcumsumexp):
        for dim in (0, 1):
            for test in check:
                assert test(lambda t: scan(t, dim), (x.clone().requires_grad_(),))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_trapezoid(dim):
    rng = np.random.default_rng(0)
    y, x = rng.standard_normal((4, 5)), np.sort(rng.standard_normal((4, 5)), dim)
    ty, tx = torch.tensor(y.tolist()), torch.tensor(x.tolist())
    trapezoid = getattr(np, "trapezoid", None) or np.trapz
    assert np.allclose(
        array(torch.trapezoid(ty, tx, dim=dim)), trapezoid(y, x, axis=dim), atol=1e-5
    )
    assert np.allclose(
        array(torch.trapz(ty, dx=0.5, dim=dim)), trapezoid(y, dx=0.5, axis=dim), atol=1e-5
    )
    whole = torch.cumulative_trapezoid(ty, tx, dim=dim).select(dim, -1)
    assert np.allclose(array(whole), trapezoid(y, x, axis=dim), atol=1e-5)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: torch.cumsum(torch.zeros(3), 1), IndexError),
        (lambda: torch.cummax(torch.zeros(3), -2), IndexError),
        (lambda: torch.cummin(torch.zeros(3, dtype=torch.complex64), 0), RuntimeError),
        (lambda: torch.trapezoid(torch.zeros(3, dtype=torch.bool)), RuntimeError),
        (lambda: torch.trapezoid(torch.zeros(3), torch.zeros(4)), RuntimeError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call()
