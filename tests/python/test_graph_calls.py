"""Calls by captured graphs: make_graphed_callables, and torch.compile(mode="reduce-overhead")."""

import gc
import random
import weakref

import pytest
from graphs import captured, model_and_data, same

import tessera as torch
from tessera import nn

# ---- make_graphed_callables ----------------------------------------------------------------------


def test_graphed_module_trains_as_the_module(cuda):
    plain, data = model_and_data(cuda)
    model, _ = model_and_data(cuda)
    model = torch.cuda.make_graphed_callables(model, (torch.randn(16, 8, device=cuda),))
    for m in (plain, model):
        m.o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    for x, t in data:
        losses = []
        for m in (plain, model):
            loss = nn.functional.cross_entropy(m(x), t)
            m.o.zero_grad()
            loss.backward()
            m.o.step()
            losses.append(loss.item())
        assert losses[0] == losses[1]
    plain.eval(), model.eval()  # another mode than the captured one: the module's own forward
    assert same(plain(data[0][0][:3]), model(data[0][0][:3]))


def test_graphed_callables_one_after_another(cuda):
    first, second = nn.Linear(4, 5).to(cuda), nn.Linear(5, 2).to(cuda)

    def middle(x, scale):
        return torch.tanh(x) * scale, x.sum()

    samples = (
        (torch.randn(3, 4, device=cuda, requires_grad=True),),
        (torch.randn(3, 5, device=cuda, requires_grad=True), torch.ones(5, device=cuda)),
        (torch.randn(3, 5, device=cuda, requires_grad=True),),
    )
    a, b, c = torch.cuda.make_graphed_callables((first, middle, second), samples)
    for _ in range(3):
        x = torch.randn(3, 4, device=cuda, requires_grad=True)
        scale = torch.randn(5, device=cuda)
        y, extra = b(a(x), scale)
        (c(y).sum() + extra).backward()
        x2 = x.detach().requires_grad_()
        parameters = (*first.parameters(), *second.parameters())
        w = [p.detach().clone().requires_grad_() for p in parameters]
        h, extra2 = middle(nn.functional.linear(x2, w[0], w[1]), scale)
        (nn.functional.linear(h, w[2], w[3]).sum() + extra2).backward()
        assert same(extra, extra2) and torch.allclose(x.grad, x2.grad)
        for p, q in zip(parameters, w):
            assert torch.allclose(p.grad, q.grad)
            p.grad = None


def test_gradients_of_graphed_calls_add_up(cuda):
    layer = nn.Linear(3, 3).to(cuda)
    graphed = torch.cuda.make_graphed_callables(
        lambda x: layer(x) ** 2, (torch.ones(2, 3, device=cuda, requires_grad=True),)
    )
    x = torch.randn(2, 3, device=cuda, requires_grad=True)
    for _ in range(3):
        graphed(x).sum().backward()
    expected = torch.autograd.grad((layer(x) ** 2).sum(), x)[0] * 3
    assert torch.allclose(x.grad, expected)


def test_graphed_calls_in_the_wrong_order(cuda):
    graphed = torch.cuda.make_graphed_callables(
        lambda x: x**3, (torch.ones(3, device=cuda, requires_grad=True),)
    )
    x = torch.ones(3, device=cuda, requires_grad=True)
    first = graphed(x)
    graphed(x * 2)
    with pytest.raises(RuntimeError, match="replayed again"):
        first.sum().backward()


def test_graphed_without_gradients(cuda):
    layer = nn.Linear(3, 2).to(cuda).eval()
    with torch.no_grad():
        graphed = torch.cuda.make_graphed_callables(layer, (torch.ones(4, 3, device=cuda),))
        x = torch.randn(4, 3, device=cuda)
        first = graphed(x)
        graphed(x + 1)
        assert same(first, nn.functional.linear(x, layer.weight, layer.bias))


def test_unused_inputs(cuda):
    x, y = (torch.ones(3, device=cuda, requires_grad=True) for _ in range(2))
    with pytest.raises(RuntimeError):
        torch.cuda.make_graphed_callables(lambda a, b: a * 2, (x, y))
    graphed = torch.cuda.make_graphed_callables(lambda a, b: a * 2, (x, y), allow_unused_input=True)
    a, b = (torch.ones(3, device=cuda, requires_grad=True) for _ in range(2))
    graphed(a, b).sum().backward()
    assert a.grad.tolist() == [2] * 3 and b.grad is None
    with pytest.raises(TypeError, match="only Tensors"):
        torch.cuda.make_graphed_callables(lambda a, b: a * b, (x, 3.0))
    hooked = nn.Linear(3, 3).to(cuda)
    hooked.register_forward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="hooks"):
        torch.cuda.make_graphed_callables(hooked, (x,))


# ---- torch.compile(mode="reduce-overhead") -------------------------------------------------------


def replays(compiled):
    """How many graphs a compiled callable has."""
    calls = (
        compiled.__closure__[0].cell_contents
        if hasattr(compiled, "__closure__")
        else compiled._calls
    )
    return sum(e.captured is not None for e in calls.entries.values())


def test_compiled_function(cuda):
    @torch.compile(mode="reduce-overhead")
    def f(x, k, *, shift=0.0):
        return {"y": torch.sin(x) * k + shift, "k": k}

    kept = []
    for n in range(6):
        x = torch.full((5,), float(n), device=cuda)
        got = f(x, 2, shift=0.5)
        kept.append((got["y"], torch.sin(x) * 2 + 0.5))
        assert got["k"] == 2
    assert all(same(a, b) for a, b in kept)  # earlier results are not written over
    assert replays(f) == 1
    for n in range(4):
        assert same(f(x, 3)["y"], torch.sin(x) * 3)
        assert same(f(x[:2], 3)["y"], torch.sin(x[:2]) * 3)
    assert replays(f) == 3


def test_compiled_module_trains_as_the_module(cuda):
    plain, data = model_and_data(cuda, dropout=0.3)
    model, _ = model_and_data(cuda, dropout=0.3)
    compiled = torch.compile(model, mode="reduce-overhead")
    assert list(compiled.state_dict()) == ["_orig_mod." + n for n in plain.state_dict()]
    losses = {}
    for m in (plain, compiled):
        o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
        torch.cuda.manual_seed(3)
        losses[m] = []
        for x, t in data:
            loss = nn.functional.cross_entropy(m(x), t)
            o.zero_grad()
            loss.backward()
            o.step()
            losses[m].append(loss.item())
    assert losses[plain] == losses[compiled] and replays(compiled) == 1
    plain.eval(), compiled.eval()
    assert not model.training
    with torch.no_grad():
        for x, _ in data:
            assert same(plain(x), compiled(x))
    assert replays(compiled) == 2


def test_compiled_calls_keep_nothing_alive(cuda):
    """Memory goes when the program lets go of it, and not at the next garbage collection."""
    layer = nn.Linear(64, 64).to(cuda)
    compiled = torch.compile(layer, mode="reduce-overhead")
    for _ in range(4):
        compiled(torch.ones(8, 64, device=cuda)).sum().backward()
    gc.collect()
    gc.disable()
    try:
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        for _ in range(3):
            compiled(torch.ones(8, 64, device=cuda)).sum().backward()
        torch.cuda.synchronize()
        assert torch.cuda.memory_allocated() == before
        captured_graph = weakref.ref(next(iter(compiled._calls.entries.values())).captured)
        del compiled
        assert captured_graph() is None
    finally:
        gc.enable()


def test_compiled_calls_whose_backward_is_still_to_come(cuda):
    layer = nn.Linear(3, 3).to(cuda)
    f = torch.compile(lambda x: layer(x).tanh(), mode="reduce-overhead")
    for _ in range(5):
        a, b = (torch.randn(2, 3, device=cuda) for _ in range(2))
        layer.zero_grad()
        (f(a).sum() + 2 * f(b).sum()).backward()
        got = layer.weight.grad.clone()
        layer.zero_grad()
        (layer(a).tanh().sum() + 2 * layer(b).tanh().sum()).backward()
        assert torch.allclose(got, layer.weight.grad)
    assert replays(f) == 1


outside = 1.0


def test_compiled_calls_see_what_changed(cuda):
    """Values that the function uses beside its arguments: a graph is for those of its capture."""
    global outside
    outside = 1.0
    scale = 2.0
    layer = nn.Linear(3, 3).to(cuda)
    layer.gain = 1.0
    table = torch.ones(3, device=cuda)

    def f(x):
        return layer(x) * scale * layer.gain * outside + table

    compiled = torch.compile(f, mode="reduce-overhead")
    x = torch.randn(2, 3, device=cuda)

    def check():
        with torch.no_grad():
            for _ in range(4):
                assert same(compiled(x), f(x))

    check()
    assert replays(compiled) == 1
    outside = 1.5
    check()
    scale = 3.0
    check()
    layer.gain = 0.5
    check()
    table = torch.full((3,), 4.0, device=cuda)
    check()
    table.fill_(5)  # in place: the graph reads it
    check()
    layer.weight = nn.Parameter(torch.zeros(3, 3, device=cuda))
    check()
    layer.bias.data = torch.ones(3, device=cuda)
    check()


def test_compiled_functions_that_cannot_be_captured(cuda):
    calls = []

    def reads(x):
        return x * 2 if x.sum() > 0 else x * 3

    def writes(x):
        return x.add_(1) * 2

    def counts(x):
        calls.append(1)
        return x + len(calls)

    weight = torch.ones(3, device=cuda, requires_grad=True)

    def trains(x):
        loss = (x * weight).sum()
        loss.backward()
        return loss.detach()

    def at_random(x):
        return x + random.random()

    numbers = iter(range(100))

    def goes_on(x):
        return x + next(numbers)

    x = torch.ones(3, device=cuda)
    for f in (trains, at_random, goes_on):
        compiled = torch.compile(f, mode="reduce-overhead")
        seen = set()
        for _ in range(5):
            weight.grad = None
            seen.add(compiled(x).sum().item())
            assert f is not trains or weight.grad.tolist() == [1] * 3
        assert replays(compiled) == 0 and len(seen) == (1 if f is trains else 5)
    for f in (reads, writes, counts):
        compiled = torch.compile(f, mode="reduce-overhead")
        for n in range(5):
            a, b = x * (n - 2), x * (n - 2)
            calls.clear() if f is counts else None
            expected = f(a)
            calls.clear() if f is counts else None
            assert same(compiled(b), expected) and same(a, b)
        assert replays(compiled) == 0
    cpu = torch.compile(lambda x: x + 1, mode="reduce-overhead")
    assert all(cpu(torch.ones(2)).tolist() == [2, 2] for _ in range(4))


def test_compiled_inside_a_capture(cuda):
    f = torch.compile(lambda x: x * 2 + 1, mode="reduce-overhead")
    x = torch.ones(4, device=cuda)
    for _ in range(4):
        f(x)
    g, y = captured(lambda: f(x))
    x.fill_(5)
    g.replay()
    assert y.tolist() == [11] * 4
