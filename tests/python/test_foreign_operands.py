"""Operators of tensors and objects that are no numbers; tensors as Python numbers.

What is expected here was compared with PyTorch 2.15 and NumPy 2.4."""

import decimal
import fractions
import math
import operator

import numpy as np
import pytest

import tessera as torch

ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod".split()
IN_PLACE = [name for name in ARITHMETIC if name != "divmod"]
COMPARISONS = {"lt": "gt", "le": "ge", "eq": "eq", "ne": "ne", "gt": "lt", "ge": "le"}


def function(name):
    if name == "divmod":
        return divmod
    return getattr(operator, f"{name}_" if name in ("and", "or") else name)


def method(name):
    return lambda self, other: (name, other)


reflected = {f"__r{n}__": method(f"r{n}") for n in ARITHMETIC}
compared = {f"__{n}__": method(n) for n in COMPARISONS}
numbers = {"__float__": lambda self: 2.0, "__int__": lambda self: 2, "__index__": lambda self: 2}
# Defines its side of every operator, and would pass for a number.
Other = type("Other", (), {**reflected, **compared, **numbers, "__hash__": object.__hash__})
Number = type("Number", (), {"__float__": lambda self: 2.0})
Index = type("Index", (), {"__index__": lambda self: 2})
FOREIGN = [Number(), Index(), decimal.Decimal(2), fractions.Fraction(1, 2), object(), None, "a"]


def tensors():
    return [torch.tensor([1.0, 2.0]), torch.tensor([1, 2]), torch.tensor(2), torch.tensor([True])]


@pytest.mark.parametrize("name", ARITHMETIC)
def test_the_other_side_is_asked(name):
    for t in tensors():
        other = Other()
        assert function(name)(t, other) == (f"r{name}", t)
        if name == "divmod":
            continue
        before = t.tolist()
        assert function("i" + name)(t, other) == (f"r{name}", t)
        assert t.tolist() == before


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_other_side_of_a_comparison_is_asked(name):
    for t in tensors():
        other = Other()
        assert function(name)(t, other) == (COMPARISONS[name], t)
        assert function(name)(other, t) == (name, t)


@pytest.mark.parametrize("name", ARITHMETIC)
def test_no_side_knows_the_other(name):
    for t in tensors():
        for other in FOREIGN:
            if isinstance(other, str) and name in ("mul", "mod"):
                continue  # Python repeats sequences, and "a" % t formats
            if isinstance(other, fractions.Fraction) and name == "pow":
                assert (t**other).tolist() == (t**0.5).tolist()  # Fraction.__rpow__ does it
                continue
            with pytest.raises(TypeError, match="unsupported operand"):
                function(name)(t, other)
            with pytest.raises(TypeError):
                function(name)(other, t)
            if name != "divmod":
                with pytest.raises(TypeError, match="unsupported operand"):
                    function("i" + name)(t, other)


def test_comparisons_that_no_side_knows():
    for t in tensors():
        for other in FOREIGN:
            assert (t == other) is False and (other == t) is False
            assert (t != other) is True and (other != t) is True
            for name in ("lt", "le", "gt", "ge"):
                with pytest.raises(TypeError, match="not supported between"):
                    function(name)(t, other)
                with pytest.raises(TypeError, match="not supported between"):
                    function(name)(other, t)


def test_methods_return_not_implemented():
    t = torch.ones(2)
    for name in [*ARITHMETIC, *COMPARISONS, *(f"r{n}" for n in ARITHMETIC)]:
        if method := getattr(t, f"__{name}__", None):
            assert method(Number()) is NotImplemented, name
    assert pow(t, 2).tolist() == [1, 1]
    with pytest.raises(TypeError, match="unsupported operand"):
        pow(t, 2, 3)


def test_functions_take_only_numbers():
    t = torch.ones(2)
    for other in (Number(), Index(), decimal.Decimal("1.5"), fractions.Fraction(1, 2)):
        for call in (
            lambda o: torch.add(t, o),
            lambda o: torch.add(t, t, alpha=o),
            lambda o: torch.full((2,), o),
            lambda o: t.fill_(o),
            lambda o: torch.clamp(t, min=o),
            lambda o: torch.linspace(0, o, 3),
            lambda o: torch.where(t > 0, t, o),
            lambda o: torch.nn.functional.leaky_relu(t, o),
            lambda o: t.__setitem__(0, o),
            lambda o: t.__setitem__(torch.tensor([0]), o),
        ):
            with pytest.raises(TypeError):
                call(other)
        with pytest.raises(RuntimeError, match="Could not infer dtype"):
            torch.tensor([other])
    assert t.tolist() == [1, 1]
    # A dtype says how such objects are to be read.
    assert torch.tensor([decimal.Decimal("1.5")], dtype=torch.float32).item() == 1.5
    assert torch.tensor([Index()], dtype=torch.int64).item() == 2
    with pytest.raises(TypeError, match="interpreted as an integer"):
        torch.tensor([decimal.Decimal(2)], dtype=torch.int64)


SCALARS = [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int64, np.uint64]


@pytest.mark.parametrize("make", SCALARS)
def test_numbers_of_numpy(make):
    t, n = torch.tensor([1.0, 2.0, 3.0]), make(2)
    assert (t + n).tolist() == [3, 4, 5] and (t + n).dtype == torch.float32
    assert (n + t).tolist() == [3, 4, 5] and (n - t).tolist() == [1, 0, -1]
    assert (n / t).tolist() == pytest.approx([2, 1, 2 / 3]) and (t / n).tolist() == [0.5, 1, 1.5]
    assert (t == n).tolist() == (n == t).tolist() == [False, True, False]
    assert (t < n).tolist() == [True, False, False] == (n > t).tolist()
    assert torch.full((1,), n).item() == 2
    assert (t == np.bool_(True)).tolist() == [True, False, False]


# ---- arrays --------------------------------------------------------------------------------------

ARRAYS = ["float32", "float64", "float16", "int64", "int32", "uint8", "bool", "uint16", "uint32"]


@pytest.mark.parametrize("dtype", ARRAYS)
def test_equality_with_arrays(dtype):
    a = np.array([1, 0, 4]).astype(dtype)
    for t in (torch.tensor([1.0, 0, 3]), torch.tensor([1, 0, 3]), torch.tensor([[1.0, 0, 3]] * 2)):
        expected = torch.eq(t, torch.tensor(a.tolist()))
        for got in (t == a, a == t, t.__eq__(a)):
            assert got.dtype == torch.bool and got.tolist() == expected.tolist()
    scalar = torch.tensor(4.0)
    assert (scalar == a).tolist() == [False, False, dtype != "bool"] == (a == scalar).tolist()
    assert (scalar == a[2:].reshape(())).shape == ()
    assert (torch.empty(0) == a[:1]).tolist() == []


def test_equality_with_arrays_of_other_shapes_and_kinds():
    t = torch.tensor([1.0, 2, 3])
    assert (t == np.array([[1.0, 2, 4]])).tolist() == [[True, True, False]]
    for a in (np.array([1.0, 2]), np.array([])):
        for equal in (lambda: t == a, lambda: a == t):
            with pytest.raises(RuntimeError, match="must match the size of tensor b"):
                equal()
    for a in (np.array([1, 2, 3], dtype=object), np.array(["a", "b", "c"])):
        assert (t == a) is False and (a == t) is False
    with pytest.raises(ValueError, match="negative"):
        t == np.array([1.0, 2, 3])[::-1]
    with pytest.raises(ValueError, match="byte order"):
        t == np.array([1.0, 2, 3]).astype(">f4")
    read_only = np.array([1.0, 2, 4])
    read_only.setflags(write=False)
    assert (t == read_only).tolist() == [True, True, False]

    class Own(torch.Tensor):
        pass

    assert type(t.as_subclass(Own) == np.array([1.0, 2, 4])) is Own
    # Only == compares elements, in PyTorch too.
    assert (t != np.array([1.0, 2, 3])) is True and (np.array([1.0, 2, 3]) != t) is True
    for name in ("lt", "le", "gt", "ge"):
        for pair in ((t, np.ones(3)), (np.ones(3), t)):
            with pytest.raises(TypeError, match="not supported between"):
                function(name)(*pair)


def test_arithmetic_with_arrays():
    t, a = torch.tensor([1.0, 2, 3]), np.array([1.0, 2, 4], dtype=np.float32)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
        got = function(name)(t, a)
        expected = function(name)(t, torch.from_numpy(a))
        assert isinstance(got, torch.Tensor) and got.tolist() == expected.tolist(), name
        if name == "truediv":
            assert (a / t).tolist() == pytest.approx([1, 1, 4 / 3])
            assert (np.ones((2, 3)) / t).dtype == torch.float64
            continue
        with pytest.raises(TypeError):
            function(name)(a, t)
        with pytest.raises(TypeError):
            function("i" + name)(a.copy(), t)
    assert (np.array([2]) / torch.tensor([1, 4])).tolist() == [2, 0.5]
    with pytest.raises(RuntimeError, match="requires grad"):
        a / torch.ones(3, requires_grad=True)


def test_objects_that_handle_calls():
    class Handles:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, [type(a) is torch.Tensor for a in args]

    t, h = torch.ones(2), Handles()
    for name in IN_PLACE:
        left, right = function(name)(t, h), function(name)(h, t)
        assert isinstance(left[0], str) and left[1] == [True, False], name
        assert isinstance(right[0], str) and right[1] in ([True, False], [False, True]), name
    assert (h // t)[0] == "__rfloordiv__" and (h @ t)[0] == "__rmatmul__"
    assert (h**t)[0] == "__rpow__" and (h << t)[0] == "__rlshift__"


# ---- tensors as numbers --------------------------------------------------------------------------

ONE_ELEMENT = "only one element tensors can be converted to Python scalars"


def test_conversions_of_several_elements():
    for t in (torch.ones(3), torch.empty(0), torch.ones(2, dtype=torch.int64), torch.ones(2) > 0):
        for convert in (float, int, complex, math.floor, math.sqrt, math.ceil):
            with pytest.raises(ValueError, match=ONE_ELEMENT):
                convert(t)
        with pytest.raises(RuntimeError, match=f"a Tensor with {t.numel()} elements cannot"):
            t.item()
        with pytest.raises(RuntimeError, match="Boolean value of Tensor"):
            bool(t)
        with pytest.raises(TypeError, match="only integer tensors of a single element"):
            operator.index(t)


def test_conversions_of_complex_numbers():
    t = torch.tensor(1 + 2j)
    with pytest.raises(RuntimeError, match="value cannot be converted to type double without over"):
        float(t)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without ove"):
        int(t)
    assert complex(t) == 1 + 2j and bool(t) is True
    assert float(torch.tensor(3 + 0j)) == 3.0 and int(torch.tensor(3 + 0j)) == 3


def test_conversions_of_one_element(device):
    t = torch.tensor([[2.5]], device=device)
    assert float(t) == 2.5 and int(t) == 2 and complex(t) == 2.5 and bool(t) and math.floor(t) == 2
    n = torch.tensor([3], dtype=torch.int16, device=device)
    assert operator.index(n) == 3 and hex(n) == "0x3" and [0, 1, 2, 3][n] == 3 and float(n) == 3.0
    with pytest.raises(RuntimeError, match=r"Tensor.item\(\) cannot be called on meta tensors"):
        float(torch.empty(1, device="meta"))


# ---- x.data = y ----------------------------------------------------------------------------------


def test_data_of_itself(device):
    for make in (torch.nn.Parameter, lambda t: t, lambda t: t + 1):
        p = make(torch.arange(6.0, device=device).reshape(2, 3))
        values = p.tolist()
        for _ in range(3):
            p.data = p
        assert p.tolist() == values and (p * 1).sum().item() == sum(map(sum, values))
        p.data = p.data
        p.data = p.detach().t()
        assert p.shape == (3, 2) and p.t().tolist() == values
        p.data = p[1:]
        assert p.shape == (2, 2) and p[0, 1].item() == values[1][1]
        p.data = p.data.view(-1)[:0] if p.is_contiguous() else p.data[:0]
        assert p.numel() == 0


def test_data_of_another_kind_is_no_memory_fault():
    p = torch.nn.Parameter(torch.ones(4))
    (p * 2).sum().backward()
    p.data = torch.ones(2, 3, dtype=torch.float64)
    assert p.shape == (2, 3) and p.dtype == torch.float64 and p.requires_grad
    assert p.grad.shape == (4,)
    p.grad = None
    (p * 3).sum().backward()
    assert p.grad.tolist() == [[3] * 3] * 2 and p.grad.dtype == torch.float64
    with pytest.raises(RuntimeError, match="floating point"):
        p.data = torch.ones(2, dtype=torch.int64)
    y = torch.ones(4, requires_grad=True)
    z = (y * y).sum()
    y.data = torch.zeros(100)
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        z.backward()
