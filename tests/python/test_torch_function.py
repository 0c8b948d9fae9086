"""__torch_function__: subclasses stay, objects handle calls themselves."""

import pytest

import tessera as torch
from tessera import nn


class Sub(torch.Tensor):
    pass


class Log(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Log.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def sub(*values):
    return torch.tensor(values).as_subclass(Sub)


def test_results_keep_the_class():
    x = sub(1.0, 2.0)
    for result in (
        x + 1,
        1 + x,
        x * x,
        -x,
        torch.exp(x),
        x.view(1, 2),
        x[0],
        x[:1],
        x.cpu(),
        x.to(torch.float64),
        x.detach(),
        x.data,
        x.view(1, 2).T,
        x == 1,
    ):
        assert type(result) is Sub
    assert type(x.shape) is torch.Size and x.tolist() == [1.0, 2.0]
    y = x
    y += 1
    assert y is x and type(y) is Sub


def test_history_survives_the_change_of_class():
    x = sub(1.0, 2.0).requires_grad_()
    assert x.is_leaf
    y = x * 3
    assert type(y) is Sub and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_override_sees_calls():
    x = torch.ones(2).as_subclass(Log)
    Log.calls.clear()
    x + 1
    torch.add(torch.ones(2), x)
    x.view(1, 2)
    x[0]
    x[0] = 5
    x.cpu()
    assert Log.calls == ["add", "add", "view", "__getitem__", "__setitem__", "cpu"]
    assert x.tolist() == [5.0, 1.0]


def test_subclass_comes_first_and_not_implemented_is_passed_on():
    order = []

    class First(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append("first")
            return NotImplemented

    class Second(First):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append("second")
            return NotImplemented

    a = torch.ones(2).as_subclass(First)
    b = torch.ones(2).as_subclass(Second)
    with pytest.raises(TypeError, match="no implementation found for 'add'"):
        torch.add(a, b)
    assert order == ["second", "first"]


def test_objects_that_are_no_tensors():
    class Thing:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, types, len(args), kwargs

    thing = Thing()
    assert torch.add(torch.ones(2), thing, alpha=2) == ("add", (Thing,), 2, {"alpha": 2})
    assert torch.exp(thing) == ("exp", (Thing,), 1, {})


def test_disabled():
    x = torch.ones(2).as_subclass(Log)
    Log.calls.clear()
    with torch._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor
    assert Log.calls == []

    class Quiet(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    assert type(torch.ones(2).as_subclass(Quiet) + 1) is torch.Tensor
    assert type(nn.Parameter(torch.ones(2)) + 1) is torch.Tensor


def test_methods_of_subclasses_and_constructors():
    class Named(torch.Tensor):
        def __new__(cls, data, name):
            self = torch.Tensor._make_subclass(cls, torch.as_tensor(data))
            self.name = name
            return self

        def __add__(self, other):
            return "mine"

    x = Named([1.0, 2.0], "x")
    assert x.name == "x" and type(x) is Named and x + 1 == "mine"
    assert type(Sub([1.0, 2.0])) is Sub and Sub([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor().shape == (0,)
    assert torch.Tensor([1, 2]).dtype is torch.float32


def test_repr_of_a_subclass():
    assert repr(sub(1.0, 2.0)) == "Sub([1., 2.])"
