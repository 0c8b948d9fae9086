"""The cross entropy of rows as one kernel: held to the operators it replaces, on the CPU."""

import os

import pytest

import tessera as torch
from tessera.nn import functional as F

SHAPES = [(1, 1), (3, 5), (7, 33), (64, 10), (5, 2048), (9, 2056), (4, 5001), (2, 50304)]
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


def made(shape, dtype, ignored=True):
    torch.manual_seed(shape[1])
    x = (torch.randn(shape, dtype=torch.float64) * 3).to(dtype)
    target = torch.randint(0, shape[1], (shape[0],))
    if ignored and shape[0] > 2:
        target[1] = -100
    return x, target


def both(x, target, device, **options):
    """Loss and gradient here, and on the CPU in double."""
    wide = x.double().clone().requires_grad_()
    want = F.cross_entropy(wide, target, **options)
    (want * torch.arange(1, want.numel() + 1).double().reshape(want.shape)).sum().backward()
    if "weight" in options:
        options["weight"] = options["weight"].to(x.dtype).to(device)
    here = x.to(device).requires_grad_()
    loss = F.cross_entropy(here, target.to(device), **options)
    factors = torch.arange(1, loss.numel() + 1).to(loss.dtype).reshape(loss.shape).to(device)
    (loss * factors).sum().backward()
    return (loss.detach(), here.grad), (want.detach(), wide.grad)


def close(got, want, dtype):
    for a, b in zip(got, want):
        scale = max(1.0, float(b.abs().max()))
        assert (a.cpu().double() - b).abs().max() <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_loss_and_gradient(shape, dtype, reduction, accelerator):
    x, target = made(shape, dtype)
    got, want = both(x, target, "cuda", reduction=reduction)
    assert got[0].dtype == dtype and got[1].dtype == dtype
    close(got, want, dtype)


def test_weights_of_classes(accelerator):
    x, target = made((64, 10), torch.float32)
    weight = torch.rand(10, dtype=torch.float64)
    for reduction in ("mean", "sum", "none"):
        close(*both(x, target, "cuda", weight=weight, reduction=reduction), torch.float32)


def test_numbers_without_end(accelerator):
    x = torch.tensor([[1.0, -torch.inf, 2.0], [1e38, -1e38, 0.0], [torch.nan, 0.0, 1.0]])
    target = torch.tensor([0, 0, 1])
    want = F.cross_entropy(x, target, reduction="none")
    got = F.cross_entropy(x.cuda(), target.cuda(), reduction="none").cpu()
    assert torch.allclose(got[:2], want[:2]) and got[2].isnan()
    assert F.cross_entropy(x[:1].cuda(), torch.tensor([1]).cuda()).item() == torch.inf


def test_not_in_rows_side_by_side(accelerator):
    x, target = made((64, 33), torch.float32)
    y = x.t().contiguous().cuda().t().requires_grad_()
    loss = F.cross_entropy(y, target.cuda())
    loss.backward()
    wide = x.double().requires_grad_()
    want = F.cross_entropy(wide, target)
    want.backward()
    close((loss.detach(), y.grad), (want.detach(), wide.grad), torch.float32)


def test_autocast_gives_float32_from_what_it_finds(accelerator):
    x, target = made((64, 512), torch.bfloat16)
    x = x.cuda().requires_grad_()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(x, target.cuda())
    assert loss.dtype == torch.float32
    loss.backward()
    assert x.grad.dtype == torch.bfloat16
    wide = x.detach().double().cpu().requires_grad_()
    F.cross_entropy(wide, target).backward()
    assert (x.grad.cpu().double() - wide.grad).abs().max() < 1e-3 * wide.grad.abs().max() * 8


def test_second_derivatives(accelerator):
    x, target = made((6, 7), torch.float64)
    weight = torch.rand(7, dtype=torch.float64).cuda()
    y = x.cuda().requires_grad_()
    t = target.cuda()
    for reduction in ("mean", "sum", "none"):
        for w in (None, weight):
            f = lambda a, w=w, r=reduction: F.cross_entropy(a, t, w, reduction=r)  # noqa: E731
            assert torch.autograd.gradgradcheck(f, (y,))


def test_a_class_that_is_not_there(accelerator):
    code = "Target 9 is out of bounds"
    x = torch.randn(4, 5, device="cuda")
    with pytest.raises(IndexError, match=code):
        F.cross_entropy(x, torch.tensor([1, 9, 0, 2]).cuda()).item()


# The gradient takes the place of the input in memory where nobody else can see that.


def plain(x, w, t, seen):
    return F.cross_entropy(x.view(-1, 8) @ w, t)


def of_a_view(x, w, t, seen):
    return F.cross_entropy((x @ w).view(-1, 16), t)


def seen_outside(x, w, t, seen):
    seen.append(x.view(-1, 8) @ w)
    return F.cross_entropy(seen[0], t)


def base_seen_outside(x, w, t, seen):
    seen.append(x @ w)
    return F.cross_entropy(seen[0].view(-1, 16), t)


def view_seen_outside(x, w, t, seen):
    seen.append((x @ w).view(-1, 16))
    return F.cross_entropy(seen[0], t)


def a_part_seen_outside(x, w, t, seen):
    z = x.view(-1, 8) @ w
    seen.append(z[0])
    return F.cross_entropy(z, t)


def detached_outside(x, w, t, seen):
    z = x.view(-1, 8) @ w
    seen.append(z.detach())
    return F.cross_entropy(z, t)


def saved_by_its_maker(x, w, t, seen):
    return F.cross_entropy((x.view(-1, 8) @ w).tanh(), t)


def used_twice(x, w, t, seen):
    z = x.view(-1, 8) @ w
    return F.cross_entropy(z, t) + F.cross_entropy(z, t) * 2


def used_by_another(x, w, t, seen):
    z = x.view(-1, 8) @ w
    return F.cross_entropy(z, t) + (z * z).sum()


def part_of_something(x, w, t, seen):
    z = x.view(-1, 8) @ w
    return F.cross_entropy(torch.cat([z, z * 2])[:6], t)


PROGRAMS = [plain, of_a_view, seen_outside, base_seen_outside, view_seen_outside,
            a_part_seen_outside, detached_outside, saved_by_its_maker, used_twice,
            used_by_another, part_of_something]  # fmt: skip


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_nobody_sees_the_gradient_in_the_place_of_the_input(program, twice, accelerator):
    torch.manual_seed(1)
    w, x = torch.randn(8, 16, dtype=torch.float64), torch.randn(2, 3, 8, dtype=torch.float64)
    t = torch.tensor([1, 5, -100, 3, 15, 0])
    grads = []
    for device in ("cpu", "cuda"):
        here, seen = w.clone().to(device).requires_grad_(), []
        loss = program(x.to(device), here, t.to(device), seen)
        before = [s.detach().clone() for s in seen]
        loss.backward(retain_graph=twice)
        if twice:
            loss.backward()
        assert all(torch.equal(s.detach(), b) for s, b in zip(seen, before))
        grads.append(here.grad.cpu())
    assert torch.allclose(*grads, atol=1e-12)


def test_what_hooks_were_given_is_theirs(accelerator):
    kept = []

    def pack(t):
        kept.append(t)
        return len(kept) - 1

    torch.manual_seed(2)
    w = torch.randn(8, 16, device="cuda", requires_grad=True)
    x, t = torch.randn(6, 8, device="cuda"), torch.arange(6, device="cuda")
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda i: kept[i]):
        loss = F.cross_entropy(x @ w, t)
    before = [k.detach().clone() for k in kept]
    loss.backward()
    assert any(k.shape == (6, 16) for k in kept)
    assert all(torch.equal(k.detach(), b) for k, b in zip(kept, before))


def test_the_gradient_takes_the_place_of_the_input(accelerator):
    if os.environ.get("DEVICE") != "cuda":
        pytest.skip("the operators it is made of run there")
    w = torch.randn(64, 4096, device="cuda", requires_grad=True)
    x, t = torch.randn(256, 64, device="cuda"), torch.zeros(256, dtype=torch.int64, device="cuda")
    loss = F.cross_entropy(x @ w, t)
    loss.item()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    loss.backward()
    torch.cuda.synchronize()
    logits = 256 * 4096 * 4
    assert torch.cuda.max_memory_allocated() - before < logits
