"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict, lazy modules."""

from collections import OrderedDict

import pytest

import tessera as torch
from tessera import nn
from tessera.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy


def lin(n):
    return nn.Linear(n, n)


def test_sequential():
    a, b, c = lin(1), lin(2), lin(3)
    seq = nn.Sequential(a, b)
    assert len(seq) == 2 and seq[0] is a and seq[-1] is b
    assert list(seq) == [a, b]
    assert isinstance(seq[:1], nn.Sequential) and list(seq[:1]) == [a]
    seq.append(c)
    assert [n for n, _ in seq.named_children()] == ["0", "1", "2"]
    del seq[0]
    assert [n for n, _ in seq.named_children()] == ["0", "1"] and seq[0] is b
    seq[0] = a
    assert seq[0] is a
    seq.insert(1, b)
    assert list(seq) == [a, b, c]
    seq.insert(-1, a)
    assert list(seq) == [a, b, a, c]
    assert seq.pop(2) is a and list(seq) == [a, b, c]
    assert list(nn.Sequential(a) + nn.Sequential(b)) == [a, b]
    assert list(nn.Sequential(a, b) * 2) == [a, b, a, b]
    seq.extend(nn.Sequential(a))
    assert list(seq) == [a, b, c, a]
    with pytest.raises(IndexError, match="index 9 is out of range"):
        seq[9]
    with pytest.raises(TypeError, match="is not a Module subclass"):
        nn.Sequential(1)
    named = nn.Sequential(OrderedDict(first=a, second=b))
    assert named.first is a and named[1] is b
    assert list(named[:1].state_dict()) == ["first.weight", "first.bias"]


def test_sequential_runs():
    torch.manual_seed(0)
    seq = nn.Sequential(nn.Linear(3, 4), nn.Identity(), nn.Linear(4, 2))
    x = torch.ones(1, 3)
    assert torch.equal(seq(x), seq[2](seq[0](x)))
    assert torch.equal(nn.Sequential()(x), x)


def test_module_list():
    a, b, c = lin(1), lin(2), lin(3)
    items = nn.ModuleList([a, b])
    items.append(c)
    items += [a]
    assert list(items) == [a, b, c, a] and len(items) == 4
    assert isinstance(items[1:3], nn.ModuleList) and list(items[1:3]) == [b, c]
    items.insert(0, c)
    assert list(items) == [c, a, b, c, a] and items[-1] is a
    assert items.pop(0) is c
    del items[1:3]
    assert list(items) == [a, a] and list(items._modules) == ["0", "1"]
    items[0] = b
    assert items[0] is b
    assert list(items + [c]) == [b, a, c]
    with pytest.raises(NotImplementedError):
        items(1)
    with pytest.raises(TypeError, match="ModuleList.extend should be called with an iterable"):
        items.extend(1)
    with pytest.raises(IndexError):
        items[5]
    assert repr(nn.ModuleList([lin(1), lin(1), lin(2)])) == (
        "ModuleList(\n"
        "  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n"
        "  (2): Linear(in_features=2, out_features=2, bias=True)\n"
        ")"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict():
    a, b = lin(1), lin(2)
    d = nn.ModuleDict({"a": a})
    d["b"] = b
    assert list(d) == ["a", "b"] and "a" in d and len(d) == 2 and d["b"] is b
    assert list(d.items()) == [("a", a), ("b", b)] and list(d.values()) == [a, b]
    assert d.pop("a") is a and list(d.keys()) == ["b"]
    d.update([["c", a]])
    d.update(nn.ModuleDict({"e": b}))
    assert list(d) == ["b", "c", "e"]
    del d["c"]
    d.clear()
    assert len(d) == 0
    with pytest.raises(TypeError, match="ModuleDict.update should be called"):
        d.update(1)
    with pytest.raises(ValueError, match="has length 3; 2 is required"):
        d.update([(1, 2, 3)])


def test_parameter_list():
    p = nn.Parameter(torch.ones(2))
    items = nn.ParameterList([p, torch.zeros(1)])
    assert items[0] is p and isinstance(items[1], nn.Parameter) and len(items) == 2
    items.append(nn.Parameter(torch.ones(3)))
    assert [n for n, _ in items.named_parameters()] == ["0", "1", "2"]
    assert isinstance(items[:2], nn.ParameterList) and len(items[:2]) == 2
    items += [torch.ones(1)]
    assert len(list(items)) == 4
    items[1] = p
    assert items[1] is p and items[-3] is p
    assert repr(items).startswith(
        "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2]\n"
    )
    with pytest.raises(TypeError, match="ParameterList.extend should be called with an iterable"):
        items.extend(1)
    with pytest.raises(RuntimeError, match="should not be called"):
        items(1)


def test_parameter_dict():
    p = nn.Parameter(torch.ones(2))
    d = nn.ParameterDict({"b": p, "a": torch.ones(1)})
    assert list(d) == ["a", "b"] and d["b"] is p and isinstance(d["a"], nn.Parameter)
    d["c"] = nn.Parameter(torch.ones(3))
    assert "c" in d and list(d.state_dict()) == ["a", "b", "c"]
    assert d.pop("c").shape == (3,) and d.get("c") is None and len(d) == 2
    assert d.setdefault("z", torch.ones(1)) is d["z"]
    assert d.popitem()[0] == "z"
    assert list((d | nn.ParameterDict({"q": p})).keys()) == ["a", "b", "q"]
    assert [k for k, _ in d.items()] == ["a", "b"] and len(list(d.values())) == 2
    with pytest.raises(TypeError, match="not a string"):
        d[1] = p
    d.clear()
    assert len(d) == 0 and list(d.parameters()) == []


def test_uninitialized(device):
    p = UninitializedParameter(device=device)
    assert is_lazy(p) and isinstance(p, nn.Parameter) and repr(p) == "<UninitializedParameter>"
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        p.shape  # noqa: B018
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        p + 1
    p.materialize((2, 3))
    assert type(p) is nn.Parameter and p.shape == (2, 3) and p.device.type == device
    b = UninitializedBuffer(dtype=torch.float64)
    b.materialize((2,))
    assert type(b) is torch.Tensor and b.dtype == torch.float64


def test_lazy_linear(device):
    torch.manual_seed(3)
    lazy = nn.LazyLinear(4, device=device)
    assert repr(lazy) == "LazyLinear(in_features=0, out_features=4, bias=True)"
    assert lazy.has_uninitialized_params()
    state = lazy.state_dict()
    assert is_lazy(state["weight"])
    lazy.double()
    assert lazy(torch.ones(2, 5, device=device, dtype=torch.float64)).shape == (2, 4)
    assert type(lazy) is nn.Linear and lazy.in_features == 5 and not lazy._forward_pre_hooks
    assert lazy.weight.dtype == torch.float64

    torch.manual_seed(3)
    ready = nn.Linear(5, 4)
    torch.manual_seed(3)
    lazy = nn.LazyLinear(4)
    lazy(torch.ones(1, 5))
    assert torch.equal(ready.weight, lazy.weight) and torch.equal(ready.bias, lazy.bias)

    other = nn.LazyLinear(4)
    other.load_state_dict(ready.state_dict())
    assert not other.has_uninitialized_params() and torch.equal(other.weight, ready.weight)
    assert other(torch.ones(1, 5)).shape == (1, 4) and type(other) is nn.Linear
    with pytest.raises(RuntimeError):
        ready.load_state_dict(nn.LazyLinear(4).state_dict())


def test_lazy_modules_must_finish():
    from tessera.nn.modules.lazy import LazyModuleMixin

    class Half(LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = UninitializedParameter()

        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="module Half has not been fully initialized"):
        Half()(torch.ones(1))
