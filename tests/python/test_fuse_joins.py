"""Kernels that take in the pointwise work before and after them: the same bits, fewer kernels."""

import itertools

import pytest

import tessera as torch
from tessera import fuse

F = torch.nn.functional


@pytest.fixture(autouse=True)
def deferred():
    before = fuse.mode()
    fuse.set_tiny(0)
    yield
    fuse.set_tiny(1024)
    fuse.set_mode(before)


def bits(t):
    return t.detach().cpu().contiguous().view(torch.uint8).tolist() if t.dim() else [t.item()]


def both(program, *tensors):
    """What the program returns, deferred; its bits are those that it has when nothing waits."""
    fuse.set_mode("off")
    expected = [bits(t) for t in program(*[t.clone() for t in tensors])]
    given = [t.clone() for t in tensors]
    fuse.set_mode("on")
    fuse.run()
    fuse.reset_stats()
    got = program(*given)
    fuse.run()
    stats = fuse.stats()
    text = fuse.explain()
    assert [bits(t) for t in got] == expected, text
    return stats, text


def numbers(shape, dtype, device, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g).to(device=device, dtype=dtype)


KERNELS = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:]),
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "amax": lambda x: x.amax(-1),
    "sum of all": lambda x: x.sum(),
    "mean of all": lambda x: x.mean(),
    "var": lambda x: x.var(-1),
    "std kept": lambda x: x.std(-1, keepdim=True),
}
SHAPES = [(6, 300), (2, 3, 64), (5, 33), (40, 7), (1, 1000), (3, 4096), (130, 2)]
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_same_bits(name, dtype, device):
    kernel = KERNELS[name]
    for shape in SHAPES:
        a, b = numbers(shape, dtype, device), numbers(shape, dtype, device, 1)
        w = numbers(shape[-1:], dtype, device, 2)

        def program(a, b, w, kernel=kernel):
            y = kernel(torch.tanh(a) * b + w)
            return [torch.relu(y) * 2 + 1]

        stats, text = both(program, a, b, w)
        assert stats["pending"] == 0
        if shape == (6, 300):  # all of it is one group
            # A row that is added has no place in one long run; a view is what var returns.
            alone = name in ("sum of all", "mean of all", "var")
            many = 8 if name == "std kept" else 7
            assert stats["largest_group"] == (4 if alone else many), text


def test_loss_is_one_kernel(device):
    x, y = numbers((64, 50), torch.float32, device), numbers((64, 50), torch.float32, device, 1)
    stats, text = both(lambda x, y: [((x - y) ** 2).mean()], x, y)
    assert stats["groups"] == 1 and stats["largest_group"] == 3, text


def test_softmax_backward_takes_its_gradient_in(device):
    x = numbers((8, 300), torch.float32, device).requires_grad_()
    g = numbers((8, 300), torch.float32, device, 1)

    def program(x, g):
        x = x.detach().requires_grad_()
        torch.softmax(x, -1).mul(g).sum().backward()
        return [x.grad]

    both(program, x, g)


@pytest.mark.parametrize("shape", [(33, 64), (5, 300), (700, 40), (3, 2048), (2, 5000)], ids=str)
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_norms_backward_takes_its_gradient_in(norm, shape, device):
    x, g = numbers(shape, torch.float32, device), numbers(shape, torch.bfloat16, device, 1)
    w = numbers(shape[1:], torch.float32, device, 2)

    def program(x, g, w):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        f = F.layer_norm if norm == "layer" else F.rms_norm
        y = f(x, shape[1:], w)
        y.backward(g.float() * 2 + 1)
        return [x.grad * 0.5 + x, w.grad]

    assert "row_norm_backward" in both(program, x, g, w)[1]


def test_owned_results_are_stored(device):
    a = numbers((7, 100), torch.float32, device)

    def program(a):
        x = a * 2 + 1
        y = torch.softmax(x, -1)
        z = y * 3
        return [x, y, z]

    both(program, a)


def test_writes_in_between_keep_their_order(device):
    """What the kernel's producer reads is overwritten before the kernel's turn, and the like."""
    a, b = numbers((9, 64), torch.float32, device), numbers((9, 64), torch.float32, device, 1)

    def before(a, b):
        x = a * 2
        a.mul_(5)
        return [torch.softmax(x, -1), a, b]

    def again(a, b):
        x = a * 2
        a.copy_(x.sum(-1, keepdim=True).expand(9, 64))
        y = torch.softmax(x + b, -1)
        b.add_(y)
        return [y, a, b]

    def after(a, b):
        y = torch.softmax(a + b, -1)
        b.mul_(2)
        z = y * b
        a.add_(1)
        return [z, a, b]

    def in_place(a, b):
        y = torch.softmax(a, -1)
        y.mul_(b)
        a.sub_(y)
        return [a, y]

    def own_input(a, b):
        a.copy_(torch.log_softmax(a * b, -1) + 1)
        return [a]

    def twice(a, b):
        x = a + b
        return [x.sum(-1), x.amax(-1), torch.softmax(x, -1)]

    def chained(a, b):
        x = torch.softmax(a * b, -1) * 2
        y = F.layer_norm(x + 1, (64,)) - b
        return [(y * y).sum(-1).sqrt()]

    def rows(a, b):
        m = (a * b).mean(-1, keepdim=True)
        return [torch.exp(a - m), m]

    def views(a, b):
        x = (a * 2).t()
        y = a + b
        return [torch.softmax(x, -1), x.sum(0), y[:, ::2].sum(-1), (a + b).view(3, 3, 64).sum(0)]

    for program in (before, again, after, in_place, own_input, twice, chained, rows, views):
        both(program, a, b)


def test_broadcast_operands(device):
    x, row = numbers((4, 5, 96), torch.float32, device), numbers((96,), torch.float32, device, 1)
    column = numbers((4, 5, 1), torch.float32, device, 2)
    plane = numbers((5, 96), torch.float32, device, 3)
    number = numbers((), torch.float32, device, 4)
    for other in (row, column, plane, number):
        both(lambda x, o: [torch.softmax(x * o, -1) + o, (x + o).sum(-1), (x - o).sum()], x, other)


def test_dead_kernels_never_run(device):
    x = numbers((50, 60), torch.float32, device)
    fuse.set_mode("on")
    fuse.run()
    fuse.reset_stats()
    y = torch.softmax(x * 2, -1).sum()
    del y
    fuse.run()
    assert fuse.stats()["groups"] == 0 and fuse.stats()["dropped"] == 3


def test_empty_and_single(device):
    for shape in ((0, 5), (5, 0), (), (1,), (1, 1)):
        x = torch.ones(shape, device=device)
        both(lambda x: [(x * 2).sum(), (x + 1).sum(-1) if x.dim() else x + 1], x)


def test_random_combinations(device):
    """Chains of kernels and pointwise work over a few tensors, some of them dropped on the way."""
    steps = [
        lambda x, y: x * y + 1,
        lambda x, y: torch.softmax(x, -1),
        lambda x, y: F.layer_norm(x, (40,)) - y,
        lambda x, y: x - x.mean(-1, keepdim=True),
        lambda x, y: x / (1 + y.abs()).sum(-1, keepdim=True),
        lambda x, y: torch.sigmoid(x).mul_(y),
        lambda x, y: x + y.amax(0),
    ]
    a, b = numbers((12, 40), torch.float32, device), numbers((12, 40), torch.float32, device, 1)
    for order in itertools.islice(itertools.permutations(range(len(steps)), 4), 0, None, 9):

        def program(a, b, order=order):
            kept = []
            for n, k in enumerate(order):
                a, b = steps[k](a, b), a
                if (n + k) % 3 == 0:
                    kept.append(a)
            return [*kept, a]

        both(program, a, b)
