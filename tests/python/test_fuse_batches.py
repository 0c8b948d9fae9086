"""Reductions that wait together, as the norms of gradients do, and run together."""

import pytest

import tessera as torch
from tessera import fuse

SIZES = [1, 2, 3, 31, 64, 300, 1000, 1023, 4096, 4097, 30000, 100003]


def tensors(device, dtype, offset=0):
    torch.manual_seed(3)
    made = [torch.randn(n + offset).to(dtype).to(device)[offset:] for n in SIZES]
    return [*made, made[4].view(8, 8), made[6].view(10, 100).t(), made[8].view(4, 4, 256)[:, 1:]]


def bits(values):
    return [v.cpu().reshape(-1).view(torch.uint8).tolist() for v in values]


def both_ways(f, xs):
    """What f gives for each when nothing waits, and when all wait for each other."""
    with fuse.disabled():
        alone = bits(f(x) for x in xs)
    waiting = [f(x) for x in xs]
    torch.stack([w.reshape(()).double() for w in waiting]).data_ptr()
    return alone, bits(waiting)


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_norms_have_the_bits_they_have_alone(dtype, offset, device):
    xs = tensors(device, dtype, offset)
    for order in (2, 1, float("inf")):
        alone, together = both_ways(lambda x, p=order: torch.linalg.vector_norm(x, p), xs)
        assert alone == together


def test_work_before_and_after_goes_with_each(device):
    xs = tensors(device, torch.float32)
    alone, together = both_ways(lambda x: (x * 0.5 + 1).sum().sqrt() * 3, xs)
    assert alone == together
    alone, together = both_ways(lambda x: (x.double() * 0.5).exp().mean(), xs)
    assert alone == together


def test_more_than_one_launch_has_room_for(device):
    xs = [torch.full((100 + i,), 0.5, device=device) for i in range(150)]
    norms = [torch.linalg.vector_norm(x) for x in xs]
    got = torch.stack(norms).tolist()
    assert got == pytest.approx([0.5 * (100 + i) ** 0.5 for i in range(150)], rel=1e-6)


def test_clipping_is_what_it_is_one_by_one(device):
    def clipped():
        torch.manual_seed(5)
        parameters = [torch.nn.Parameter(torch.randn(n, device=device)) for n in SIZES * 3]
        for p in parameters:
            p.grad = torch.randn(p.shape).to(device)
        total = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        return bits([total, *(p.grad for p in parameters)])

    with fuse.disabled():
        alone = clipped()
    assert clipped() == alone
