"""On the CPU a NaN's bits do not depend on where its element stands in a loop: fused and unfused
cut loops at other places. And on every device a copy has the bits of what it is a copy of."""

import pytest
from conftest import KIND

import tessera as torch
from tessera.nn import functional as F

FUNCTIONS = {
    "add": lambda a, b: a + b,
    "addcmul": lambda a, b: torch.addcmul(a, b, a, value=0.5),
    "hypot": torch.hypot,
    "mish": lambda a, b: F.mish(torch.addcmul(a, a, b, value=0.5)),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "atan2": torch.atan2,
    "logaddexp": torch.logaddexp,
}


def bits(x):
    return x.contiguous().view(torch.int64 if x.dtype == torch.float64 else torch.int32).tolist()


def operands(dtype, n):
    """Both signs of NaN and of infinity, and numbers, each beside each."""
    nan = torch.tensor(float("nan"), dtype=dtype)
    values = torch.stack([nan, -nan, *(torch.tensor(v, dtype=dtype) for v in
                          (1.5, -2.0, 0.0, float("inf"), -float("inf")))])  # fmt: skip
    i = torch.arange(n)
    return values[i % 7], values[(i // 7 + i) % 7]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_wherever_it_stands(name, dtype):
    f = FUNCTIONS[name]
    a, b = operands(dtype, 147)
    assert {bits(a[:1])[0], bits(a[1:2])[0]} == set(bits(a[:2])) and bits(a[:1]) != bits(a[1:2])
    whole = bits(f(a, b))
    for first, end in ((0, 1), (3, 22), (5, 69), (64, 147), (100, 147)):
        assert bits(f(a[first:end].clone(), b[first:end].clone())) == whole[first:end]
    assert [bits(f(a[i : i + 1].clone(), b[i : i + 1].clone()))[0] for i in range(147)] == whole


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_of_several_in_a_reduction_one_is_left(dtype):
    a, b = operands(dtype, 147)
    for x in (a, b, -a, a.flip(0)):
        for f in (torch.sum, torch.mean, torch.prod, torch.var, torch.amax):
            assert bits(f(x).reshape(1)) == bits(torch.tensor([float("nan")], dtype=dtype)), f


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


@pytest.fixture
def deferred():
    torch.fuse.set_tiny(0)
    yield
    torch.fuse.set_tiny(1024)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("way", COPIES)
def test_copies_have_the_bits(way, layout, dtype, device, deferred):
    if layout == "one for all" and way in ("overwritten", "exchanged"):
        pytest.skip("several places in one memory cannot be written")
    x = LAYOUTS[layout](each_16_bits(device)).view(dtype)
    before = x.view(torch.int16).clone().cpu()
    copy, beside = COPIES[way](x, torch.ones_like(x))
    if beside is not None:
        beside.sum().item()  # read first: it takes the copy along
    assert torch.equal(copy.view(torch.int16).cpu(), before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_signs_of_copies(dtype, device, deferred):
    if KIND == "cuda" and dtype == torch.float16:
        pytest.skip("a kernel of CUDA reads every float16 NaN as one")
    x = each_16_bits(device)
    assert torch.equal(x.view(dtype).clone().signbit(), x < 0)
    assert torch.equal(x.view(dtype).clone().clone().signbit(), x < 0)
