"""What samples of pointwise operators cannot say: errors, promotion, numbers in front of tensors,
integers at their limits, second derivatives, parts of complex numbers."""

import cmath
import math
import operator

import pytest

import tessera as torch

F = torch.nn.functional
INF, NAN = math.inf, math.nan


def ints(*values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype)


def raises(kind, words, function, *args, **kwargs):
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    assert words in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    "name, number",
    [
        ("add", 2),
        ("sub", 2.5),
        ("mul", True),
        ("truediv", 3),
        ("floordiv", 7),
        ("mod", 7.5),
        ("pow", 2),
        ("and_", 6),
        ("or_", 6),
        ("xor", 6),
        ("lshift", 3),
        ("rshift", 300),
    ],
)
def test_operators_with_numbers_on_either_side(name, number):
    """As Python's own, which PyTorch follows: also in dtypes."""
    apply = getattr(operator, name)
    values = [1, 2, 3, 5] if "shift" in name or name == "pow" else [1, -2, 3, 5]
    for left, right in ((values, number), (number, values)):
        expected = [apply(v, number) if left is values else apply(number, v) for v in values]
        made = apply(*(torch.tensor(x) if x is values else x for x in (left, right)))
        assert made.tolist() == pytest.approx(expected)
        kind = torch.float32 if any(isinstance(e, float) for e in expected) else torch.int64
        assert made.dtype == kind


def test_numbers_do_not_widen_tensors():
    half = torch.ones(2, dtype=torch.float16)
    byte = torch.ones(2, dtype=torch.uint8)
    assert (2.0 * half).dtype == (2 - half).dtype == (3**half).dtype == torch.float16
    assert (300 + byte).tolist() == [45, 45]
    assert (byte * 2.5).dtype == torch.float32
    assert (half * 2j).dtype == torch.complex64
    assert (torch.ones(2, dtype=torch.float64) * 2j).dtype == torch.complex128
    assert (torch.tensor([True]) + 1).dtype == torch.int64
    assert (half + torch.ones((), dtype=torch.float64)).dtype == torch.float16
    assert (half + torch.ones(2, dtype=torch.bfloat16)).dtype == torch.float32
    assert torch.add(1, 2).tolist() == 3 and torch.div(1, 2).tolist() == 0.5


def test_comparisons_round_the_number_first():
    assert (torch.tensor([0.1], dtype=torch.float16) == 0.1).item()
    assert (torch.tensor([0.1], dtype=torch.bfloat16) >= 0.1).item()
    assert (torch.tensor([0.1]) == 0.1).item()
    assert (ints(255, dtype=torch.uint8) == -1).item()
    raises(RuntimeError, "overflow", lambda: ints(1, dtype=torch.int8) < 128)
    assert (ints(1, 2) < 1.5).tolist() == [True, False]
    assert (torch.tensor([NAN]) != torch.tensor([NAN])).item()


def test_what_is_refused():
    bools = torch.tensor([True, False])
    raises(RuntimeError, "two bool tensors", lambda: bools - bools)
    raises(RuntimeError, "with a bool tensor", lambda: 1 - bools)
    raises(RuntimeError, "with a bool tensor", lambda: torch.ones(2) - True)
    raises(RuntimeError, "on a bool tensor", lambda: -bools)
    raises(NotImplementedError, "Bool", F.threshold, bools, 1, 2)
    raises(NotImplementedError, "Long", torch.lerp, ints(1), ints(2), 0.5)
    raises(RuntimeError, "negative limits", F.hardtanh, ints(1, dtype=torch.uint8))
    raises(RuntimeError, "on a bool tensor", lambda: +bools)
    raises(RuntimeError, "negative integer powers", lambda: ints(2) ** -1)
    raises(TypeError, "only implemented on integer", lambda: ~torch.ones(2))
    raises(NotImplementedError, "bitwise_and", lambda: torch.ones(2) & 1)
    raises(RuntimeError, "can't be cast", ints(1).div_, 2)
    raises(RuntimeError, "must not be a floating point", torch.add, ints(1), ints(1), alpha=0.5)
    raises(RuntimeError, "must not be a complex", torch.add, torch.ones(1), 1.0, alpha=1j)
    raises(RuntimeError, "Boolean alpha", torch.add, ints(1), ints(1), alpha=True)
    raises(RuntimeError, "to be a boolean tensor", torch.where, torch.ones(2), 1.0, 2.0)
    raises(RuntimeError, "torch.sgn", torch.sign, torch.tensor([1j]))
    raises(RuntimeError, "At least one of", torch.clamp, torch.ones(2))
    raises(RuntimeError, "different dtypes", torch.heaviside, torch.ones(1), ints(1))
    raises(RuntimeError, "expected dtype", torch.lerp, torch.ones(1), torch.ones(1).double(), 0.5)
    raises(RuntimeError, "addcdiv", torch.addcdiv, ints(1), ints(1), ints(1))
    raises(RuntimeError, "rounding_mode", torch.div, torch.ones(1), 2, rounding_mode="up")
    raises(RuntimeError, "dtype double", torch.ones(1).float_power_, 2)
    raises(NotImplementedError, "Bool", torch.abs, bools)
    raises(RuntimeError, "non-complex", lambda: torch.ones(1).imag)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integers_divided_by_zero(name):
    divide = getattr(torch, name)
    raises(RuntimeError, "ZeroDivisionError", divide, ints(1, 2), 0)
    raises(RuntimeError, "ZeroDivisionError", divide, ints(1, 2), ints(1, 0))
    lowest = -(2**63)
    assert divide(ints(lowest), ints(-1)).item() in (lowest, 0)
    assert divide(torch.ones(1), torch.zeros(1)).item() in (INF, NAN) or name != "floor_divide"


def test_quotients_and_what_they_leave():
    a, b = ints(7, -7, 7, -7), ints(3, 3, -3, -3)
    assert (a // b).tolist() == [2, -3, -3, 2]
    assert torch.div(a, b, rounding_mode="trunc").tolist() == [2, -2, -2, 2]
    assert (a % b).tolist() == [1, 2, -2, -1]
    assert torch.fmod(a, b).tolist() == [1, -1, 1, -1]
    x, y = a.double() / 2, b.double() / 2
    assert (x // y).tolist() == [u // v for u, v in zip(x.tolist(), y.tolist())]
    assert (x % y).tolist() == [u % v for u, v in zip(x.tolist(), y.tolist())]
    tricky = torch.tensor([1.0], dtype=torch.float64)
    assert (tricky // 0.1).item() == 1.0 // 0.1


def test_numbers_beside_narrow_elements():
    byte = ints(1, 100, 255, dtype=torch.uint8)
    assert (byte // -3).tolist() == [0, 0, 1]  # -3 is 253
    assert torch.clamp(byte, -1, 2).tolist() == [1, 2, 2]  # a bound stays what it is
    tenth = torch.tensor([1.0], dtype=torch.float16) % 0.1
    assert tenth.item() == 1.0 % torch.tensor(0.1, dtype=torch.float16).item()
    quotient = torch.tensor([1.0]).bfloat16(), torch.tensor([0.1]).bfloat16()
    assert torch.div(*quotient, rounding_mode="trunc").item() == 10


def test_shifts_past_the_bits():
    assert (ints(1, -1) << 64).tolist() == [0, 0]
    assert (ints(1, -1) >> 64).tolist() == [0, -1]
    assert (ints(1, dtype=torch.int8) << 7).tolist() == [-128]


def test_neighbours():
    for name, gap in (("float64", 2**-52), ("float32", 2**-23), ("bfloat16", 2**-7)):
        one = torch.ones(1, dtype=getattr(torch, name))
        assert torch.nextafter(one, one + 1).double().item() == 1 + gap
        assert torch.nextafter(one, one - 1).double().item() == 1 - gap / 2
    half = torch.float16
    zero, low = torch.zeros(1, dtype=half), torch.tensor([2.0**-14], dtype=half)
    assert torch.nextafter(zero, -low).double().item() == -(2.0**-24)
    assert torch.nextafter(low, zero).double().item() == 2.0**-14 - 2.0**-24
    assert torch.nextafter(torch.tensor([65504.0], dtype=half), zero + INF).item() == INF


def test_special_values():
    x = torch.tensor([NAN, INF, -INF, -0.0])
    assert torch.signbit(x).tolist()[1:] == [False, True, True]
    assert torch.nan_to_num(x, 1.0, 2.0, 3.0).tolist() == [1.0, 2.0, 3.0, 0.0]
    assert torch.nan_to_num(x.half())[1].item() == 65504
    assert torch.isnan(torch.maximum(x, torch.zeros(4))).tolist() == [True, False, False, False]
    assert torch.fmax(x, torch.zeros(4))[0].item() == 0
    assert math.isnan(torch.clamp(x, -1, 1)[0].item())
    assert F.logsigmoid(x)[1:3].tolist() == [0, -INF]
    assert torch.xlogy(torch.zeros(1), torch.zeros(1)).item() == 0
    assert torch.logaddexp(torch.tensor([-INF]), torch.tensor([-INF])).item() == -INF
    assert torch.frexp(torch.tensor([6.0, 2.0**-140, 0.0])).exponent.tolist() == [3, -139, 0]


def test_equal_and_close():
    a = torch.tensor([1.0, NAN])
    assert not torch.equal(a, a.clone()) and not torch.allclose(a, a)
    assert torch.allclose(a, a, equal_nan=True)
    assert torch.is_nonzero(a[0]) and not torch.is_nonzero(torch.zeros(1, 1))
    raises(RuntimeError, "ambiguous", torch.is_nonzero, a)
    assert torch.equal(torch.zeros(0), torch.zeros(0)) and not torch.equal(ints(1), ints(1, 1))
    raises(RuntimeError, "did not match", torch.isclose, torch.ones(1), torch.ones(1).double())


def test_functions_of_nn_functional_in_place():
    for name in ("relu", "elu", "celu", "selu", "leaky_relu", "hardtanh", "silu", "relu6"):
        x = torch.tensor([-1.5, 0.5, 7.0])
        expected = getattr(F, name)(x)
        assert getattr(F, name)(x, inplace=True) is x
        assert torch.equal(x, expected), name
    x = torch.tensor([-1.5, 0.5])
    assert F.relu_(x) is x and x.tolist() == [0.0, 0.5]
    assert F.threshold(ints(1, 5), 2, 9).tolist() == [9, 5]
    raises(ValueError, "min_val", F.hardtanh, x, 1.0, -1.0)


def test_rrelu_draws_slopes_in_training():
    x = -torch.ones(1000)
    drawn = F.rrelu(x, 0.25, 0.5, training=True)
    assert ((drawn <= -0.25) & (drawn >= -0.5)).all() and drawn.unique().numel() > 500
    assert torch.equal(F.rrelu(x, 0.25, 0.75), x / 2)


SMOOTH = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "sinc": torch.sinc,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "softplus": lambda x: F.softplus(x, 2.0, 3.0),
    "logsigmoid": F.logsigmoid,
    "elu": lambda x: F.elu(x, 1.5),
    "celu": lambda x: torch.celu(x, 1.5),
    "selu": torch.selu,
    "hardswish": F.hardswish,
    "logit": lambda x: torch.logit(x / 8 + 0.5),
    "exp": torch.exp,
    "atan2": lambda x: torch.atan2(x, x + 2.5),
    "pow": lambda x: (x * x + 1) ** (x / 2),
    "div": lambda x: x / (x * x + 1),
    "lerp": lambda x: torch.lerp(x, x * x, x * 0.25),
    "addcdiv": lambda x: torch.addcdiv(x, x * x, x * x + 1, value=2),
    "logaddexp": lambda x: torch.logaddexp(x, x * x),
    "rsqrt": lambda x: torch.rsqrt(x * x + 1),
    "glu": lambda x: F.glu(torch.stack([x, x * x]), 0).reshape(-1),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_second_derivatives(name):
    """Differences of the first derivative, in float64."""

    def slope(value, graph=False):
        x = value.detach().clone().requires_grad_()
        (g,) = torch.autograd.grad(SMOOTH[name](x).sum(), x, create_graph=True)
        return torch.autograd.grad(g.sum(), x)[0] if graph else g.detach()

    x = torch.tensor([-2.3, -0.7, -0.1, 0.2, 0.9, 2.1], dtype=torch.float64)
    step = 1e-5
    expected = (slope(x + step) - slope(x - step)) / (2 * step)
    assert torch.allclose(slope(x, graph=True), expected, 1e-6, 1e-8), name


def test_ties_share_the_gradient():
    x, y = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    torch.maximum(x, y).sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [0.5, 0.5]


def test_parts_of_complex_numbers():
    z = torch.tensor([1 + 2j, -3 + 4j])
    assert z.real.tolist() == [1, -3] and z.imag.tolist() == [2, 4]
    assert z.abs().tolist() == pytest.approx([abs(1 + 2j), 5])
    assert z.angle().tolist() == pytest.approx([cmath.phase(v) for v in z.tolist()])
    z.real = torch.tensor([5.0, 6.0])
    z.imag = 7
    assert z.tolist() == [5 + 7j, 6 + 7j]
    z.imag.neg_()
    assert z.conj().tolist() == [5 + 7j, 6 + 7j] and not z.is_conj()
    assert torch.view_as_complex(torch.view_as_real(z))._is_same_storage(z)
    assert torch.is_complex(z) and torch.real(torch.ones(2)).dtype == torch.float32


def test_gradients_through_parts():
    z = torch.tensor([1 + 2j, -3 + 4j], requires_grad=True)
    (z.real * 2 + z.imag * 3).sum().backward()
    assert z.grad.tolist() == [2 + 3j, 2 + 3j]
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * 1j).abs().sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_infinite_parts_stay_apart():
    z = torch.complex(torch.tensor([INF]), torch.tensor([1.0]))
    assert (z + z).tolist() == [complex(INF, 2)] and (z - 1).imag.item() == 1
