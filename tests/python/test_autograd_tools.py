"""Hooks, Function, anomaly mode, saved_tensors_hooks, live graphs, checkpoint, gradcheck."""

import gc
import weakref

import pytest

import tessera as torch
from tessera.utils.checkpoint import checkpoint, checkpoint_sequential


def leaf(*values, **options):
    return torch.tensor(values, requires_grad=True, **options)


def test_a_hook_sees_the_whole_gradient_and_may_change_it():
    x = leaf(1.0, 2.0)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [[5.0, 5.0]] and x.grad.tolist() == [5.0, 5.0]
    handle.remove()
    x.grad = None
    x.register_hook(lambda g: g * 10)
    (x * 2).sum().backward()
    assert seen == [[5.0, 5.0]] and x.grad.tolist() == [20.0, 20.0]


def test_hooks_of_results_run_in_order_before_their_node():
    x = leaf(3.0)
    y = x * x
    order = []
    y.register_hook(lambda g: order.append("first") or g * 2)
    y.register_hook(lambda g: order.append("second") or g + 1)
    y.retain_grad()
    (y * 5).sum().backward()
    assert order == ["first", "second"]
    assert y.grad.tolist() == [11.0] and x.grad.tolist() == [66.0]


def test_retained_gradients_keep_nothing_alive():
    x = leaf(3.0)
    y = x * x
    y.retain_grad()
    y.sum().backward()
    watcher = weakref.ref(y)
    del y
    gc.collect()
    assert watcher() is None


def test_hooks_need_a_gradient():
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(2).register_hook(lambda g: g)
    with pytest.raises(RuntimeError, match="retain_grad"):
        torch.ones(2).retain_grad()


def test_post_accumulate_hooks():
    x = leaf(1.0, 2.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (x * 4).sum().backward()
    assert seen == [[4.0, 4.0]]
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(lambda t: None)


def test_node_hooks():
    x = leaf(2.0)
    y = x * 3
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 2,))
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] + outs[0], *ins[1:]))
    y.sum().backward()
    assert x.grad.tolist() == [8.0]  # 2 * 3, and the gradient of the output added


def test_an_error_in_a_hook_comes_out():
    x = leaf(1.0)
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).sum().backward()


def test_grad_does_only_what_it_was_asked_for():
    x, y = leaf(2.0), leaf(3.0)
    ran = []
    a = x * 2
    a.register_hook(lambda g: ran.append("a"))
    b = y * 2
    b.register_hook(lambda g: ran.append("b"))
    (g,) = torch.autograd.grad((a * b).sum(), y)
    assert g.tolist() == [8.0] and ran == ["b"] and x.grad is None and y.grad is None


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, grad):
        (result,) = ctx.saved_tensors
        return grad * result


def test_function_with_its_result_saved_and_a_second_derivative():
    x = leaf(0.5, dtype=torch.float64)
    y = Exp.apply(x)
    assert y.grad_fn.name() == "ExpBackward"
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.item() == y.item() and abs(h.item() - y.item()) < 1e-12
    assert torch.autograd.gradcheck(Exp.apply, x)


def test_function_is_freed_with_its_graph():
    x = leaf(0.5)
    y = Exp.apply(x)
    watcher = weakref.ref(y)
    del y
    gc.collect()
    assert watcher() is None
    z = Exp.apply(x).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()


class TwoWays(torch.autograd.Function):
    @staticmethod
    def forward(x, y, factor):
        return x * factor, y + 1, (x > y)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[2]
        ctx.mark_non_differentiable(output[2])

    @staticmethod
    def backward(ctx, gx, gy, gmask):
        assert gmask is not None  # materialised
        return gx * ctx.factor, gy, None


def test_function_with_several_results_and_setup_context():
    x, y = leaf(1.0), leaf(2.0)
    a, b, mask = TwoWays.apply(x, y, 3)
    assert not mask.requires_grad
    a.sum().backward()
    assert x.grad.tolist() == [3.0] and y.grad.tolist() == [0.0]


def test_function_errors():
    class Short(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        Short.apply(leaf(1.0), leaf(2.0)).sum().backward()

    class Wrong(Short):
        @staticmethod
        def backward(ctx, g):
            return torch.ones(3), g

    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        Wrong.apply(leaf(1.0, 2.0), leaf(2.0, 1.0)).sum().backward()
    with pytest.raises(RuntimeError, match="should not be instantiated"):
        Short()


def test_function_in_place():
    class AddOne(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            a.add_(1)
            ctx.mark_dirty(a)
            return a

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf(1.0)
    y = x * 1
    z = AddOne.apply(y)
    assert z is y
    z.sum().backward()
    assert x.grad.tolist() == [7.0]


def test_once_differentiable():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return 2 * g * a

    x = leaf(3.0)
    seed = torch.ones(1, requires_grad=True)
    (g,) = torch.autograd.grad(Once.apply(x), x, seed, create_graph=True)
    assert g.item() == 6
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_anomaly_mode_names_the_forward_operator():
    with torch.autograd.detect_anomaly():
        a = leaf(0.0)
        b = a / a
        with pytest.raises(RuntimeError, match="DivBackward0.*nan") as caught:
            b.sum().backward()
    assert "b = a / a" in str(caught.value)
    assert not torch.autograd.is_anomaly_enabled()


def test_saved_tensors_hooks():
    log = []

    def pack(t):
        log.append("pack")
        return t.tolist()

    def unpack(values):
        log.append("unpack")
        return torch.tensor(values)

    x = leaf(2.0, 3.0)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    assert "pack" in log and "unpack" not in log
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0] and "unpack" in log


def test_live_graphs_show_the_line_that_keeps_them():
    x = leaf(2.0)
    with torch.autograd.graph.track_graphs():
        losses = [(x * x).sum() for _ in range(5)]
        found = torch.autograd.graph.live_graphs()
        name, line, count, size = found[0]
        assert name == "MulBackward0" and count == 5 and size > 0
        assert "test_autograd_tools.py" in line
        del losses
        assert torch.autograd.graph.live_graphs() == []


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_gives_the_same_gradients_and_random_numbers(reentrant):
    runs = []

    def piece(x):
        runs.append(1)
        return torch.nn.functional.dropout(x * x, 0.5) * x

    x = torch.rand(100, requires_grad=True)
    torch.manual_seed(5)
    plain = piece(x)
    plain.sum().backward()
    wanted, x.grad = x.grad, None
    torch.manual_seed(5)
    kept = checkpoint(piece, x, use_reentrant=reentrant)
    after = torch.rand(1)
    assert kept.tolist() == plain.tolist()
    kept.sum().backward()
    assert x.grad.tolist() == wanted.tolist() and len(runs) == 3
    torch.manual_seed(5)
    piece(x)
    assert torch.rand(1).item() == after.item()


def test_checkpoint_keeps_nothing_of_the_piece():
    x = torch.rand(10, requires_grad=True)
    with torch.autograd.graph.track_graphs():
        y = checkpoint(lambda t: (t * t).exp() * t, x, use_reentrant=False)
        assert sum(size for *_, size in torch.autograd.graph.live_graphs()) == 0
    y.sum().backward()
    assert x.grad is not None


def test_checkpoint_sequential():
    functions = [lambda t: t * 2, lambda t: t * t, lambda t: t + 1, lambda t: t * 3]
    x = leaf(2.0)
    y = checkpoint_sequential(functions, 2, x, use_reentrant=False)
    y.sum().backward()
    assert y.item() == 51 and x.grad.item() == 48


def test_gradcheck_finds_a_wrong_gradient():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(2.0, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(Wrong.apply, x)
    assert not torch.autograd.gradcheck(Wrong.apply, x, raise_exception=False)


def test_a_million_nodes_run_and_are_freed():
    x = leaf(1.0)
    y = x
    for _ in range(1_000_000):
        y = y + 0
    y.backward()
    assert x.grad.item() == 1
    del y


def test_a_callback_at_the_end_of_backward(device):
    queue = torch.autograd.Variable._execution_engine.queue_callback
    with pytest.raises(RuntimeError, match="no backward under way"):
        queue(print)
    w = torch.ones(2, device=device, requires_grad=True)
    seen = []
    late = torch.ones(2, device=device, requires_grad=True)
    late.register_post_accumulate_grad_hook(
        lambda p: queue(lambda: seen.append((w.grad is not None, p.grad.tolist())))
    )
    ((w * 3).exp() * late).sum().backward()  # w's gradient comes after late's
    assert len(seen) == 1 and seen[0][0]

    def fail(grad):
        raise ZeroDivisionError

    late.grad = w.grad = None
    x = w * 2
    x.register_hook(fail)
    with pytest.raises(ZeroDivisionError):
        (x * late).sum().backward()
    assert len(seen) == 1  # a backward that raised has no end


def test_gradients_are_added_as_soon_as_they_are_there(device):
    """Also to leaves that an older graph holds on to: late layers first."""
    first = torch.ones(2, device=device, requires_grad=True)
    last = torch.ones(2, device=device, requires_grad=True)
    old = first * last  # keeps what adds to them alive
    order = []
    for name, p in (("first", first), ("last", last)):
        p.register_post_accumulate_grad_hook(lambda p, name=name: order.append(name))
    h = first * 2
    h.register_hook(lambda g: order.append("between"))
    (h.exp() * last).sum().backward()
    assert order == ["last", "between", "first"] and old.shape == (2,)
