"""Hooks of modules: order, replacement, removal, errors."""

import pytest

import tessera as torch
from tessera import nn
from tessera.nn.modules import module as globals_of


class Double(nn.Module):
    def forward(self, x, times=2):
        return x * times


def test_forward_hooks_replace_and_are_removed():
    m, log = Double(), []
    first = m.register_forward_hook(lambda m, a, out: log.append("first"))
    m.register_forward_hook(lambda m, a, out: out + 1)
    m.register_forward_hook(lambda m, a, out: log.append(out), prepend=True)
    assert m(3) == 7 and log == [6, "first"]
    first.remove()
    first.remove()
    assert m(3) == 7 and log == [6, "first", 6]
    with m.register_forward_hook(lambda m, a, out: -1):
        assert m(3) == -1
    assert m(3) == 7


def test_pre_hooks():
    m = Double()
    m.register_forward_pre_hook(lambda m, args: args[0] + 1)
    assert m(1) == 4
    m.register_forward_pre_hook(lambda m, args: (args[0] * 10,))
    assert m(1) == 40
    m.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"times": 3}), with_kwargs=True, prepend=True
    )
    assert m(1) == 60
    bad = m.register_forward_pre_hook(lambda m, args, kwargs: 5, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        m(1)
    bad.remove()
    assert m(1) == 60


def test_hooks_with_kwargs():
    m, seen = Double(), []
    m.register_forward_hook(
        lambda m, args, kwargs, out: seen.append((args, kwargs, out)), with_kwargs=True
    )
    m(2, times=5)
    assert seen == [((2,), {"times": 5}, 10)]


def test_always_call():
    m, seen = Double(), []
    m.register_forward_hook(lambda m, a, out: seen.append("plain"))
    m.register_forward_hook(lambda m, a, out: seen.append("always"), always_call=True)
    assert m(1) == 2
    assert seen == ["plain", "always"]
    with pytest.raises(TypeError):
        m(None)
    assert seen == ["plain", "always", "always"]
    m.register_forward_hook(lambda m, a, out: 1 / 0, always_call=True)
    with pytest.warns(UserWarning, match="raised an exception that was silenced"):
        with pytest.raises(TypeError):
            m(None)


def test_global_hooks():
    seen = []
    handles = [
        globals_of.register_module_forward_pre_hook(lambda m, a: seen.append("pre")),
        globals_of.register_module_forward_hook(lambda m, a, out: seen.append("post")),
    ]
    m = Double()
    m.register_forward_hook(lambda m, a, out: seen.append("own"))
    m(1)
    for handle in handles:
        handle.remove()
    m(1)
    assert seen == ["pre", "post", "own", "own"]


def test_registration_hooks():
    seen = []
    handles = [
        globals_of.register_module_parameter_registration_hook(
            lambda m, name, p: seen.append(("parameter", name))
        ),
        globals_of.register_module_module_registration_hook(
            lambda m, name, child: seen.append(("module", name))
        ),
        globals_of.register_module_buffer_registration_hook(
            lambda m, name, b: seen.append(("buffer", name))
        ),
    ]
    m = nn.Module()
    m.child = nn.Linear(1, 1, bias=False)
    m.register_buffer("b", torch.ones(1))
    for handle in handles:
        handle.remove()
    assert seen == [("parameter", "weight"), ("module", "child"), ("buffer", "b")]


def test_kinds_of_backward_hooks_do_not_mix():
    m = Double()
    m.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
        m.register_backward_hook(lambda *a: None)


def test_full_backward_hooks(device):
    m = Double()
    seen = []
    m.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0].tolist(), go[0].tolist())))
    x = torch.ones(2, device=device, requires_grad=True)
    m(x).sum().backward()
    assert seen == [([2, 2], [1, 1])] and x.grad.tolist() == [2, 2]
    m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    m.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
    x.grad = None
    m(x).sum().backward()
    assert seen[-1] == ([6, 6], [3, 3]) and x.grad.tolist() == [60, 60]


def test_full_backward_hook_without_input_gradients(device):
    m = nn.Linear(2, 1).to(device)
    seen = []
    handle = m.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    m(torch.ones(1, 2, device=device)).sum().backward()
    assert seen == [((None,), [[1.0]])]
    handle.remove()
    m.register_full_backward_hook(lambda m, gi, go: (1, 2, 3))
    x = torch.ones(1, 2, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="invalid number of grad_input"):
        m(x).sum().backward()


def test_full_backward_hooks_with_several_values(device):

    class Two(nn.Module):
        def forward(self, a, n, b):
            return a * n, b * 2, "text"

    m, seen = Two(), []
    m.register_full_backward_hook(
        lambda m, gi, go: seen.append(
            ([g is not None for g in gi[:2]], [g is not None for g in go])
        )
    )
    a = torch.ones(1, device=device, requires_grad=True)
    b = torch.ones(1, device=device)
    x, y, text = m(a, 3, b)
    (x + y).sum().backward()
    assert text == "text" and a.grad.tolist() == [3]
    assert seen == [([True, False], [True, False, False])]


def test_hooks_survive_copies():
    import copy

    m = Double()
    m.register_forward_hook(_add_one)
    assert copy.deepcopy(m)(1) == 3


def _add_one(module, args, out):
    return out + 1
