"""A copy has the bits of what it is a copy of, those of a NaN included, alone or within a group."""

import os

import pytest
from conftest import KIND
from deferral import deferred  # noqa: F401

import tessera as torch


def each_16_bits(device):
    return torch.arange(-(2**15), 2**15, dtype=torch.int16).to(device)


def overwritten(x, other):
    c = x.clone()
    x.add_(1)
    return c, x


def exchanged(x, other):
    """What is held while both of their memories are written."""
    t = x.clone()
    x.copy_(other)
    other.copy_(t)
    return other, x.neg()


COPIES = {
    "alone": lambda x, other: (x.clone(), None),
    "beside": lambda x, other: (c := x.clone(), torch.sigmoid(c)),
    "of a copy": lambda x, other: (c := x.clone().clone(), c.neg() + other),
    "overwritten": overwritten,
    "exchanged": exchanged,
    "to its dtype": lambda x, other: (c := x.to(x.dtype, copy=True), c.abs()),
    "to the power of one": lambda x, other: (c := x.pow(1), c * 2),
}
LAYOUTS = {
    "dense": lambda x: x,
    "strided": lambda x: torch.stack([x, x.neg()], 1)[:, 0],
    "transposed": lambda x: x.view(256, 256).t().contiguous().t(),
    "short rows": lambda x: x.view(-1, 16)[:, :8],
    "one for all": lambda x: x.view(256, 256)[:, 1:2].expand(256, 64),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("way", COPIES)
def test_copies_have_the_bits(way, layout, dtype, device):
    if layout == "one for all" and way in ("overwritten", "exchanged"):
        pytest.skip("several places in one memory cannot be written")
    x = LAYOUTS[layout](each_16_bits(device)).view(dtype)
    before = x.view(torch.int16).clone().cpu()
    copy, beside = COPIES[way](x, torch.ones_like(x))
    if beside is not None:
        beside.sum().item()  # read first: it takes the copy along
    assert torch.equal(copy.view(torch.int16).cpu(), before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_signs_of_copies(dtype, device):
    if KIND == "cuda" and dtype == torch.float16:
        pytest.skip("a kernel of CUDA reads every float16 NaN as one")
    x = each_16_bits(device)
    assert torch.equal(x.view(dtype).clone().signbit(), x < 0)
    assert torch.equal(x.view(dtype).clone().clone().signbit(), x < 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("then", ["nothing", "its parts", "a product"])
def test_absolute_values_lose_a_sign_only(then, dtype, device):
    if "TESSERA_EMULATOR" in os.environ:
        pytest.skip("it makes one NaN of every operator's")
    whole = {torch.float32: torch.int32, torch.float64: torch.int64, torch.bfloat16: torch.int16}
    x = torch.tensor([1.5, -2.0, 0.0, -0.0, float("inf"), float("-inf"), float("nan")], dtype=dtype)
    x = torch.cat([x, x.neg()])
    y = x.to(device).abs()
    after = {
        "nothing": lambda: None,
        "its parts": lambda: torch.frexp(y)[0].sum().item(),
        "a product": lambda: (y * 2 - x.to(device)).sum().item(),
    }
    after[then]()
    bits = y.view(whole[dtype]).cpu()
    assert torch.equal(bits, x.view(whole[dtype]) & torch.iinfo(whole[dtype]).max)
