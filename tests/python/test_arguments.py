"""How calls are read, and what is said about those that cannot be."""

import numpy
import pytest

import tessera as torch


@pytest.fixture
def x(device):
    return torch.ones(2, 3, device=device)


def message(error, call):
    with pytest.raises(error) as info:
        call()
    return str(info.value)


def test_wrong_type_names_argument_and_position(x):
    text = message(TypeError, lambda: torch.add(x, "1"))
    assert text == "add(): argument 'other' (position 2) must be Tensor, not str"
    text = message(TypeError, lambda: x.add("1"))
    assert text == "add(): argument 'other' (position 1) must be Tensor, not str"
    text = message(TypeError, lambda: torch.add("1", x))
    assert text == "add(): argument 'input' (position 1) must be Tensor, not str"
    text = message(TypeError, lambda: torch.sum(x, dim="rows"))
    assert text == "sum(): argument 'dim' must be tuple of ints, not str"


def test_wrong_element_of_a_list(x):
    text = message(TypeError, lambda: x.sum((0, 1.5)))
    assert text == (
        "sum(): argument 'dim' (position 1) must be tuple of ints, but found element of type float "
        "at pos 1"
    )


def test_counts_and_keywords(x):
    assert 'missing 1 required positional argument: "other"' in message(
        TypeError, lambda: torch.add(x)
    )
    assert "takes 1 positional argument but 2 were given" in message(
        TypeError, lambda: torch.exp(x, x)
    )
    assert message(TypeError, lambda: torch.exp(x, what=1)) == (
        "exp() got an unexpected keyword argument 'what'"
    )
    assert "multiple values for argument 'other'" in message(
        TypeError, lambda: torch.add(x, x, other=x)
    )
    assert "got an unexpected keyword argument 'out'" in message(
        TypeError, lambda: torch.exp_(x, out=x)
    )


def test_pytorchs_names_of_keywords(x):
    assert torch.add(input=x, other=x).tolist() == [[2.0] * 3] * 2
    assert torch.sum(x, axis=0).tolist() == [2.0] * 3
    assert torch.sum(x, 0, keepdims=True).shape == (1, 3)


def test_lists_of_ints_in_all_spellings(x):
    for view in (x.view(3, 2), x.view((3, 2)), x.view([3, 2]), x.view(torch.Size([3, 2]))):
        assert view.shape == (3, 2)
    assert x.view(-1).shape == (6,)
    assert torch.zeros(2, 3).shape == torch.zeros((2, 3)).shape == torch.zeros(size=(2, 3)).shape
    assert x.sum(1).shape == x.sum((1,)).shape == x.sum([1]).shape == (2,)
    assert torch.zeros(()).dim() == 0
    assert torch.ones(1, device=x.device).expand(numpy.int64(2), 1).shape == (2, 1)


@pytest.mark.parametrize(
    "number", [2, 2.0, True, numpy.float32(2), numpy.int32(2), numpy.float64(2), numpy.bool_(True)]
)
def test_numbers(x, number):
    assert (x + number).tolist() == [[1.0 + float(number)] * 3] * 2
    assert (number + x).tolist() == [[1.0 + float(number)] * 3] * 2 or isinstance(
        number, numpy.generic
    )
    assert torch.add(x, x, alpha=2).tolist() == [[3.0] * 3] * 2


def test_0d_tensors_are_numbers(x):
    assert x.sum(torch.tensor(0)).shape == (3,)
    assert torch.add(x, x, alpha=torch.tensor(2.0)).tolist() == [[3.0] * 3] * 2
    assert [10, 20][torch.tensor(1)] == 20
    assert list(range(5))[: torch.tensor(2)] == [0, 1]
    assert float(torch.tensor(2.5)) == 2.5 and int(torch.tensor(2.5)) == 2


def test_a_bool_is_no_int_and_an_int_no_bool(x):
    message(TypeError, lambda: x.sum(0, 1))
    message(TypeError, lambda: torch.select(x, True, 0))


def test_dtype_and_device_arguments(device):
    assert torch.zeros(2, dtype=torch.float64).dtype is torch.float64
    assert torch.zeros(2, dtype=int).dtype is torch.int64
    assert torch.zeros(2, device=device).device.type == device
    assert torch.zeros(2, device=torch.device(device)).device.type == device
    assert "argument 'dtype' must be torch.dtype, not str" in message(
        TypeError, lambda: torch.zeros(2, dtype="float32")
    )
    message(RuntimeError, lambda: torch.zeros(2, device="nowhere"))


def test_python_operators_refuse_strangers(x):
    assert message(TypeError, lambda: x + "1") == (
        "unsupported operand type(s) for +: 'Tensor' and 'str'"
    )
    assert "unsupported operand type(s) for +: " in message(TypeError, lambda: {} + x)
    assert (x == 1).tolist() == [[True] * 3] * 2
    assert (1 - x).tolist() == [[0.0] * 3] * 2
    assert (2 / x).dtype is torch.float32


def test_reflected_numbers_promote_like_numbers(device):
    half = torch.ones(2, dtype=torch.float16, device=device)
    assert (1.5 - half).dtype is torch.float16
    assert (1 - torch.ones((), dtype=torch.float16, device=device)).dtype is torch.float16
    assert (1.5 - torch.ones(2, dtype=torch.int64, device=device)).dtype is torch.float32


def test_methods_on_the_class(x):
    assert torch.Tensor.add(x, x).tolist() == [[2.0] * 3] * 2
    assert "doesn't apply to int" in message(TypeError, lambda: torch.Tensor.add(1, x))
    assert "doesn't apply to int" in message(TypeError, lambda: torch.Tensor.size(1))
    assert torch.add.__name__ == "add" and torch.Tensor.add.__qualname__ == "Tensor.add"
    assert torch.add.__doc__


def test_errors_of_the_core_keep_their_kind(x):
    message(IndexError, lambda: x.sum(5))
    message(IndexError, lambda: x[7])
    message(RuntimeError, lambda: x.view(5))
    message(RuntimeError, lambda: x + torch.ones(4, device=x.device))


def test_device_mismatch_names_both(accelerator):
    a, b = torch.ones(2), torch.ones(2, device=accelerator)
    text = message(RuntimeError, lambda: a + b)
    assert "cpu" in text and "cuda:0" in text and "add" in text and ".to(" in text


def test_out_of_memory_has_a_class_of_its_own():
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
