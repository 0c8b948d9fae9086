"""state_dict and load_state_dict."""

from collections import OrderedDict

import pytest

import tessera as torch
from tessera import nn


class Net(nn.Module):
    _version = 3

    def __init__(self, width=2):
        super().__init__()
        self.lin = nn.Linear(width, 1)
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)
        self.register_parameter("absent", None)


def test_contents():
    net = Net()
    state = net.state_dict()
    assert type(state) is OrderedDict
    assert list(state) == ["mean", "lin.weight", "lin.bias"]
    assert state._metadata == {"": {"version": 3}, "lin": {"version": 1}}
    assert not state["lin.weight"].requires_grad
    assert state["lin.weight"].data_ptr() == net.lin.weight.data_ptr()
    assert net.state_dict(keep_vars=True)["lin.weight"] is net.lin.weight
    assert list(net.state_dict(prefix="m.")) == ["m.mean", "m.lin.weight", "m.lin.bias"]
    own = OrderedDict(x=1)
    assert net.state_dict(destination=own) is own and list(own)[0] == "x"
    with pytest.warns(FutureWarning, match="Positional args"):
        assert list(net.state_dict(OrderedDict(), "p.")) == ["p.mean", "p.lin.weight", "p.lin.bias"]


def test_loading_copies():
    a, b = Net(), Net()
    with torch.no_grad():
        a.mean.fill_(4)
    result = b.load_state_dict(a.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert result.missing_keys == [] and result.unexpected_keys == []
    assert torch.equal(a.lin.weight, b.lin.weight) and b.mean.tolist() == [4, 4]
    assert b.lin.weight.data_ptr() != a.lin.weight.data_ptr()
    assert b.lin.weight.requires_grad and b.lin.weight.is_leaf


def test_loading_converts():
    a, b = Net().double(), Net()
    b.load_state_dict(a.state_dict())
    assert b.lin.weight.dtype == torch.float32


def test_assign():
    a, b = Net().double(), Net()
    b.lin.bias.requires_grad_(False)
    state = a.state_dict()
    b.load_state_dict(state, assign=True)
    assert b.lin.weight.dtype == torch.float64 and isinstance(b.lin.weight, nn.Parameter)
    assert b.lin.weight.requires_grad and not b.lin.bias.requires_grad
    assert b.mean is state["mean"]
    kept = nn.Parameter(torch.ones(1, 2), requires_grad=False)
    b.load_state_dict({"lin.weight": kept}, strict=False, assign=True)
    assert b.lin.weight is kept and kept.requires_grad


def test_strict_errors():
    net = Net()
    wrong = OrderedDict(net.state_dict())
    del wrong["mean"]
    wrong["lin.extra"] = torch.ones(1)
    wrong["other.x"] = torch.ones(1)
    wrong["lin.weight"] = torch.ones(3, 3)
    wrong["lin.bias"] = 5
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(wrong)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "mean". \n'
        '\tUnexpected key(s) in state_dict: "other.x", "lin.extra". \n'
        "\tsize mismatch for lin.weight: copying a param with shape torch.Size([3, 3]) from "
        "checkpoint, the shape in current model is torch.Size([1, 2]).\n"
        '\tWhile copying the parameter named "lin.bias", expected torch.Tensor or Tensor-like '
        "object from checkpoint but received <class 'int'>"
    )
    del wrong["lin.weight"], wrong["lin.bias"]
    result = net.load_state_dict(wrong, strict=False)
    assert result.missing_keys == ["mean", "lin.weight", "lin.bias"]
    assert result.unexpected_keys == ["other.x", "lin.extra"]


def test_a_number_may_have_been_a_vector():
    m = nn.Module()
    m.register_buffer("count", torch.tensor(0))
    m.load_state_dict({"count": torch.tensor([7])})
    assert m.count.item() == 7


def test_hooks_of_saving_and_loading():
    net, log = Net(), []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(("pre", prefix, keep)))
    net.register_state_dict_post_hook(lambda m, state, prefix, meta: log.append(meta["version"]))
    net.lin._register_state_dict_hook(
        lambda m, state, prefix, meta: state.__setitem__(prefix + "more", 1)
    )
    state = net.state_dict()
    assert log == [("pre", "", False), 3] and state["lin.more"] == 1

    def before(module, state, prefix, meta, strict, missing, unexpected, errors):
        log.append((type(module).__name__, prefix, meta.get("version")))
        state.pop(prefix + "more", None)

    net.lin.register_load_state_dict_pre_hook(before)
    net.register_load_state_dict_post_hook(lambda m, keys: log.append(list(keys.missing_keys)))
    net.load_state_dict(state)
    assert log[2:] == [("Linear", "lin.", 1), []]
    net.register_load_state_dict_post_hook(lambda m, keys: 1)
    with pytest.raises(AssertionError, match="not expected to return"):
        net.load_state_dict(state)

    other = Net()
    other.register_state_dict_post_hook(lambda *a: 1)
    with pytest.raises(RuntimeError, match="must return None"):
        other.state_dict()


def test_extra_state():
    class Extra(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = 3

        def get_extra_state(self):
            return {"steps": self.steps}

        def set_extra_state(self, state):
            self.steps = state["steps"]

    outer = nn.Sequential(Extra())
    state = outer.state_dict()
    assert state == {"0._extra_state": {"steps": 3}}
    state["0._extra_state"] = {"steps": 9}
    outer.load_state_dict(state)
    assert outer[0].steps == 9
    with pytest.raises(RuntimeError, match='Missing key.*"0._extra_state"'):
        outer.load_state_dict({})
    with pytest.raises(RuntimeError, match='Unexpected key.*"_extra_state"'):
        nn.Linear(1, 1).load_state_dict({"_extra_state": 1}, strict=True)


def test_versions_reach_the_module():
    seen = []

    class Versioned(nn.Module):
        _version = 2

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            seen.append(local_metadata.get("version"))
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    m = Versioned()
    m.load_state_dict(m.state_dict())
    m.load_state_dict({})
    assert seen == [2, None]


def test_consume_prefix():
    from tessera.nn.modules.utils import consume_prefix_in_state_dict_if_present

    state = nn.Sequential(nn.Linear(1, 1)).state_dict(prefix="module.")
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["0.weight", "0.bias"]
    assert "0" in state._metadata
