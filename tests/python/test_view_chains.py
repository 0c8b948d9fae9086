"""Long chains of views and long lists: their cost grows with their length, not with its square."""

import time

import pytest

import tessera as torch


def timed(work):
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


@pytest.mark.parametrize("view", [lambda x: x.view(-1), lambda x: x.unsqueeze(0).squeeze(0)])
def test_a_hundred_thousand_views_write_to_their_base(view):
    x = torch.ones(3, requires_grad=True)
    base = x * 1

    def chain():
        y = base
        for _ in range(100_000):
            y = view(y)
        return y

    y, seconds = timed(chain)
    assert seconds < 20  # minutes where each view copies the steps of its parent
    y.mul_(2)
    base.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    _, seconds = timed(lambda: y.sum().item())
    assert seconds < 5


def test_slices_of_slices():
    x = torch.arange(20_000.0)

    def chain():
        y = x
        while y.numel() > 1:
            y = y[1:]
        return y

    y, seconds = timed(chain)
    assert seconds < 5
    assert y.tolist() == [19_999.0] and y._base is x
    y.fill_(7)
    assert x[-1].item() == 7


def test_a_million_views_are_freed_without_recursion():
    y = torch.ones(2)
    for _ in range(1_000_000):
        y = y.view(2)
    del y


def test_writes_along_a_chain():
    x = torch.ones(1000, requires_grad=True)
    base = x * 1

    def write():
        y = base
        for _ in range(999):
            y = y[1:]
            y.mul_(1.001)
        base.sum().backward()

    _, seconds = timed(write)
    assert seconds < 10
    want = 1.001 ** torch.arange(1000, dtype=torch.float64)
    assert torch.allclose(x.grad.double(), want, rtol=1e-4)


@pytest.mark.parametrize("length", [1, 20])
def test_long_and_short_chains_have_the_same_gradients(length):
    def run(dtype):
        x = torch.arange(1.0, 13, dtype=dtype).requires_grad_()
        base = (x * 1).view(3, 4)
        y = base
        for _ in range(length):
            y = y.t().t()
        y = y[1:, ::2]
        base.mul_(3)
        y.mul_(2)
        loss = (base * base).sum() + (y * 5).sum()
        (first,) = torch.autograd.grad(loss, x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        return first.tolist(), second.tolist()

    scale = [3.0] * 4 + [6.0, 3.0] * 4
    # d/dx (s x)^2 = 2 s^2 x; the slice adds 5 s.
    extra = [0.0] * 4 + [5.0, 0.0] * 4
    first, second = run(torch.float64)
    assert first == [2 * s * s * v + e * s for v, (s, e) in enumerate(zip(scale, extra), 1)]
    assert second == [2 * s * s for s in scale]


def test_long_chains_through_another_dtype():
    x = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)
    base = x * 1
    y = torch.view_as_complex(base)
    for _ in range(30):
        y = y.view(4)
    base.mul_(2)
    y.mul_(1j)
    base[:, 0].sum().backward()
    assert x.grad.tolist() == [[0.0, -2.0]] * 4


def test_many_outputs_share_one_step():
    x = torch.ones(20_000, requires_grad=True)
    base = x * 1
    parts, seconds = timed(lambda: base.split([1] * 20_000))
    base.mul_(2)
    total, more = timed(lambda: torch.cat(parts).sum())
    total.backward()
    assert seconds + more < 10
    assert x.grad.tolist() == [2.0] * 20_000


def test_gradients_of_many_inputs():
    xs = [torch.ones(1, requires_grad=True) for _ in range(10_000)]
    total = torch.cat([x * 2 for x in xs]).sum()
    grads, seconds = timed(lambda: torch.autograd.grad(total, xs))
    assert seconds < 5
    assert all(g.item() == 2 for g in grads)


def test_a_function_of_many_tensors():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *xs):
            ctx.save_for_backward(*xs)
            return xs

        @staticmethod
        def backward(ctx, *gs):
            return gs

    xs = [torch.ones(1, requires_grad=True) for _ in range(5000)]
    ys, seconds = timed(lambda: Same.apply(*xs))
    assert seconds < 3
    torch.cat(ys).sum().backward()
    assert xs[-1].grad.item() == 1


@pytest.mark.parametrize("order", [1, -1])
def test_many_hooks_of_a_tensor(order):
    x = torch.ones(1, requires_grad=True)
    seen = []

    def work():
        handles = [x.register_hook(lambda g, i=i: seen.append(i)) for i in range(50_000)]
        last = handles.pop(25_000)
        for handle in handles[::order]:
            handle.remove()
        handles[0].remove()
        (x * 2).sum().backward()
        last.remove()
        (x * 2).sum().backward()

    _, seconds = timed(work)
    assert seen == [25_000] and seconds < 10
