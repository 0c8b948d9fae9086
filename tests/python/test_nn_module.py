"""nn.Module: attributes, names, hooks, modes, copies, printing."""

import abc
import copy
import pickle
import weakref
from collections import OrderedDict

import pytest

import tessera as torch
from tessera import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)
        self.last = nn.Linear(3, 1, bias=False)

    def forward(self, x):
        return self.last(self.first(x) * self.scale)


def names(pairs):
    return [name for name, _ in pairs]


def test_registration_and_order():
    net = Net()
    assert names(net.named_parameters()) == ["scale", "first.weight", "first.bias", "last.weight"]
    assert names(net.named_parameters("p")) == [
        "p." + n for n in ["scale", "first.weight", "first.bias", "last.weight"]
    ]
    assert names(net.named_parameters(recurse=False)) == ["scale"]
    assert names(net.named_buffers()) == ["seen", "scratch"]
    assert names(net.named_children()) == ["first", "last"]
    assert names(net.named_modules()) == ["", "first", "last"]
    assert [type(m) for m in net.modules()] == [Net, nn.Linear, nn.Linear]
    assert len(list(net.parameters())) == 4 and len(list(net.buffers())) == 2
    assert "scale" in dir(net) and "first" in dir(net)
    assert "0" not in dir(nn.Sequential(nn.Identity()))


def test_shared_modules_and_parameters_are_listed_once():
    net = nn.Module()
    net.a = nn.Linear(1, 1)
    net.b = net.a
    assert names(net.named_parameters()) == ["a.weight", "a.bias"]
    assert names(net.named_parameters(remove_duplicate=False)) == [
        "a.weight",
        "a.bias",
        "b.weight",
        "b.bias",
    ]
    assert list(net.state_dict()) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert names(net.named_modules()) == ["", "a"]
    assert names(net.named_modules(remove_duplicate=False)) == ["", "a", "b"]


def test_assigning_moves_between_kinds():
    m = nn.Module()
    m.x = 5
    m.x = nn.Parameter(torch.ones(1))
    assert "x" in m._parameters and "x" not in m.__dict__
    m.x = None
    assert m.x is None and "x" in m._parameters
    m.y = nn.Identity()
    m.y = None
    assert m.y is None and "y" in m._modules
    m.x2 = nn.Identity()
    m.x2 = nn.Parameter(torch.ones(1))
    assert "x2" in m._parameters and "x2" not in m._modules
    m.register_buffer("b", None)
    m.b = torch.ones(2)
    assert m._buffers["b"].tolist() == [1, 1]
    m.c = nn.Buffer(torch.ones(1), persistent=False)
    assert "c" in m._buffers and list(m.state_dict()) == ["x2", "b"]
    m.plain = torch.ones(1)
    assert "plain" in m.__dict__
    del m.b, m.x2, m.y
    assert not hasattr(m, "b") and not hasattr(m, "x2") and not hasattr(m, "y")


@pytest.mark.parametrize(
    "act, error, words",
    [
        (lambda m: m.register_parameter(1, None), TypeError, "parameter name should be a string"),
        (lambda m: m.register_parameter("a.b", None), KeyError, 'name can\'t contain "."'),
        (lambda m: m.register_parameter("", None), KeyError, "empty string"),
        (lambda m: m.register_parameter("first", None), KeyError, "'first' already exists"),
        (lambda m: m.register_parameter("p", torch.ones(1)), TypeError, "torch.nn.Parameter or"),
        (lambda m: m.register_buffer("a.b", None), KeyError, 'buffer name can\'t contain "."'),
        (lambda m: m.register_buffer("scale", None), KeyError, "already exists"),
        (lambda m: m.register_buffer("q", 1), TypeError, "torch Tensor or None required"),
        (lambda m: m.add_module("a.b", None), KeyError, "got: a.b"),
        (lambda m: m.add_module("a", 1), TypeError, "is not a Module subclass"),
        (lambda m: m.add_module("scale", nn.Identity()), KeyError, "already exists"),
        (lambda m: m.register_module(1, None), TypeError, "module name should be a string"),
        (lambda m: setattr(m, "scale", torch.ones(1)), TypeError, "as parameter 'scale'"),
        (lambda m: setattr(m, "first", 1), TypeError, "as child module 'first'"),
        (lambda m: setattr(m, "seen", 1), TypeError, "as buffer 'seen'"),
        (lambda m: m.nothing, AttributeError, "'Net' object has no attribute 'nothing'"),
        (lambda m: m.train("yes"), ValueError, "expected to be boolean"),
        (lambda m: m.get_submodule("first.x"), AttributeError, "Linear has no attribute `x`"),
        (lambda m: m.get_submodule("scale"), AttributeError, "`scale` is not an nn.Module"),
        (lambda m: m.get_parameter("seen"), AttributeError, "`seen` is not an nn.Parameter"),
        (lambda m: m.get_buffer("scale"), AttributeError, "`scale` is not a buffer"),
        (lambda m: m.set_submodule("", nn.Identity()), ValueError, "without a target name"),
        (lambda m: m.to(torch.int64), TypeError, "only accepts floating point"),
        (lambda m: m.load_state_dict([1]), TypeError, "Expected state_dict to be dict-like"),
        (lambda m: nn.Module(1), TypeError, "takes 1 positional argument but 2 were given"),
        (lambda m: nn.Module(a=1), TypeError, "unexpected keyword argument 'a'"),
        (lambda m: nn.Module()(1), NotImplementedError, 'required "forward" function'),
    ],
)
def test_refusals(act, error, words):
    with pytest.raises(error) as caught:
        act(Net())
    assert words in str(caught.value).replace("\\'", "'")


def test_before_init():
    class Early(nn.Module):
        def __init__(self, value):
            self.value = value
            super().__init__()

    assert Early(3).value == 3
    for value, kind in ((nn.Parameter(torch.ones(1)), "parameters"), (nn.Identity(), "module")):
        with pytest.raises(AttributeError, match=f"cannot assign {kind} before Module.__init__"):
            Early(value)
    with pytest.raises(AttributeError, match="cannot assign buffer before"):
        nn.Module.__new__(nn.Module).register_buffer("x", None)


def test_non_leaf_parameter():
    leaf = nn.Parameter(torch.ones(1))
    moved = nn.Parameter(torch.ones(1))
    moved.data = moved.data
    m = nn.Module()
    m.ok = moved
    derived = leaf * 2
    derived.__class__ = nn.Parameter
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'x'"):
        m.register_parameter("x", derived)


def test_paths():
    net = Net()
    assert net.get_submodule("") is net
    assert net.get_submodule("first") is net.first
    assert net.get_parameter("first.weight") is net.first.weight
    assert net.get_buffer("seen") is net.seen
    new = nn.Identity()
    net.set_submodule("first", new)
    assert net.first is new
    with pytest.raises(AttributeError, match="has no attribute `absent`"):
        net.set_submodule("absent", new, strict=True)


def test_modes_and_gradient_flags():
    net = Net()
    assert net.training
    assert net.eval() is net and not net.first.training
    net.train()
    assert net.last.training
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(torch.ones(1, 2)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0, 0, 0]
    net.zero_grad()
    assert net.scale.grad is None


def test_apply_runs_children_first():
    seen = []
    net = Net()
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "Linear", "Net"]


def test_conversions_keep_the_objects():
    net = Net()
    before = dict(net.named_parameters())
    net.register_buffer("count", torch.tensor(3))
    net(torch.ones(1, 2)).sum().backward()
    assert net.double() is net
    assert all(before[k] is p and p.dtype == torch.float64 for k, p in net.named_parameters())
    assert all(p.grad.dtype == torch.float64 for p in net.parameters())
    assert net.count.dtype == torch.int64 and net.seen.dtype == torch.float64
    for convert, dtype in (
        (lambda: net.half(), torch.float16),
        (lambda: net.bfloat16(), torch.bfloat16),
        (lambda: net.float(), torch.float32),
        (lambda: net.to(torch.float64), torch.float64),
        (lambda: net.to(dtype=torch.float32), torch.float32),
        (lambda: net.to("cpu", torch.float64), torch.float64),
        (lambda: net.to(torch.ones(1)), torch.float32),
        (lambda: net.to(torch.device("cpu"), torch.float64, True), torch.float64),
        (lambda: net.type(torch.float32), torch.float32),
    ):
        assert convert() is net
        assert {p.dtype for p in net.parameters()} == {dtype}
    assert net.cpu().to(device="cpu") is net
    with pytest.raises(TypeError):
        net.to(nonsense=1)


def test_move_to_device(device):
    net = Net().to(device)
    assert {t.device.type for t in (*net.parameters(), *net.buffers())} == {device}
    out = net(torch.ones(1, 2, device=device))
    assert out.device.type == device
    if device == "cuda":
        assert Net().cuda().scale.is_cuda
        assert net.cpu().scale.is_cpu


def test_deepcopy():
    net = Net()
    net.tied = net.first
    net(torch.ones(1, 2)).sum().backward()
    twin = copy.deepcopy(net)
    assert twin.tied is twin.first and twin.first is not net.first
    for (name, p), (other_name, q) in zip(net.named_parameters(), twin.named_parameters()):
        assert name == other_name and p is not q and type(q) is nn.Parameter
        assert torch.equal(p, q) and q.requires_grad and q.grad is None
    shallow = copy.copy(net)
    assert shallow.first is net.first


def test_pickle():
    net = Net().eval()
    net.first.weight.note = "kept"
    twin = pickle.loads(pickle.dumps(net))
    assert not twin.training and repr(twin) == repr(net)
    assert twin.first.weight.note == "kept"
    for (name, p), (other, q) in zip(net.state_dict().items(), twin.state_dict().items()):
        assert name == other and torch.equal(p, q)
    assert isinstance(twin.scale, nn.Parameter)


def test_subclassing_with_mixins_and_abc():
    class Mixin:
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.mixed = True

    class Base(nn.Module, abc.ABC):
        @abc.abstractmethod
        def forward(self, x): ...

    class Both(Mixin, Base):
        def forward(self, x):
            return x + 1

    assert Both().mixed and Both()(1) == 2
    with pytest.raises(TypeError):
        Base()

    class Chained(nn.Module):
        call_super_init = True

    class Last:
        def __init__(self, value=0):
            self.value = value

    class Diamond(Chained, Last):
        pass

    assert Diamond(value=4).value == 4

    class WithProperty(nn.Module):
        @property
        def width(self):
            return self.absent

    with pytest.raises(AttributeError):
        WithProperty().width  # noqa: B018

    class Generic(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)

    assert isinstance(Generic(), nn.Linear)
    assert hash(Generic()) and Generic() != Generic()


def test_repr():
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (last): Linear(in_features=3, out_features=1, bias=False)\n"
        ")"
    )
    assert repr(nn.Sequential()) == "Sequential()"
    nested = nn.Sequential(OrderedDict(a=nn.Sequential(nn.Identity()), b=nn.Identity()))
    assert repr(nested) == (
        "Sequential(\n  (a): Sequential(\n    (0): Identity()\n  )\n  (b): Identity()\n)"
    )

    class Said(nn.Module):
        def extra_repr(self):
            return "one\ntwo"

    assert repr(Said()) == "Said(\n  one\n  two\n)"


def test_modules_are_let_go():
    net = Net()
    ref = weakref.ref(net)
    del net
    assert ref() is None


def test_compile():
    net = Net()
    assert net.compile() is None and net(torch.ones(1, 2)).shape == (1, 1)


def test_sharing_between_processes_says_that_it_is_missing():
    with pytest.raises(AttributeError, match="Tensor.share_memory_ is not implemented"):
        Net().share_memory()


def test_to_empty(device):
    net = Net().to_empty(device=device)
    assert net.scale.shape == (3,) and net.scale.device.type == device
