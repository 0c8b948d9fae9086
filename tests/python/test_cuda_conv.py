"""Convolutions on the device against the CPU's: dimensions, groups, layouts, dtypes, gradients."""

import pytest

import tessera as torch
import tessera.nn.functional as F

# input, weight (out, in / groups, kernel), options
CASES = [
    ((2, 3, 12, 11), (5, 3, 3, 3), {"padding": 1}),
    ((2, 8, 9, 10), (70, 8, 1, 1), {}),
    ((1, 6, 13, 9), (4, 3, 3, 2), {"stride": (2, 1), "groups": 2, "dilation": (1, 2)}),
    ((2, 12, 8, 8), (12, 1, 3, 3), {"padding": 1, "groups": 12}),  # depthwise
    ((2, 6, 7, 8), (12, 1, 3, 3), {"stride": 2, "groups": 6}),  # two outputs each
    ((2, 16, 11, 9), (16, 1, 5, 5), {"padding": (2, 1), "stride": (1, 2), "groups": 16}),
    ((1, 5, 9, 9), (5, 1, 2, 3), {"padding": 1, "dilation": (2, 1), "groups": 5}),
    ((2, 24, 7, 7), (40, 12, 3, 3), {"padding": 2, "dilation": 2, "groups": 2}),
    ((1, 3, 20, 20), (16, 3, 7, 7), {"stride": 2, "padding": 3}),
    ((3, 5, 33), (6, 5, 4), {"stride": 3, "padding": 2}),
    ((2, 3, 5, 6, 7), (4, 3, 2, 3, 2), {"padding": 1, "stride": (1, 2, 2)}),
    ((1, 40, 3, 3), (66, 40, 3, 3), {"padding": 1}),
]
TRANSPOSED = [
    ((2, 5, 6, 7), (5, 4, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    ((2, 6, 5, 5), (6, 3, 2, 2), {"stride": 2, "groups": 3}),
    ((2, 4, 9), (4, 3, 4), {"stride": 3, "dilation": 2}),
    ((1, 3, 3, 4, 3), (3, 2, 2, 2, 2), {"stride": 2}),
    ((2, 6, 5, 5), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
]
TOLERANCE = {
    torch.float32: 1e-4,
    torch.float64: 1e-10,
    torch.float16: 1e-2,
    torch.bfloat16: 6e-2,
    torch.complex64: 1e-4,
    torch.complex128: 1e-10,
}


@pytest.fixture(autouse=True, params=["cudnn", "tiles"])
def exact(request):
    with torch.backends.cudnn.flags(enabled=request.param == "cudnn", allow_tf32=False):
        yield


def check_close(a, b, dtype):
    a, b = a.detach().cpu(), b.detach()
    assert a.shape == b.shape and a.dtype == b.dtype == dtype
    wide = torch.complex128 if a.is_complex() else torch.float64
    a, b = a.to(wide), b.to(wide)
    assert float((a - b).abs().max()) <= TOLERANCE[dtype] * (1 + float(b.abs().max()))


def function_of(shape, transposed):
    return getattr(F, f"conv{'_transpose' if transposed else ''}{len(shape) - 2}d")


def compare(device, dtype, case, transposed, last=False, bias=True):
    shape, weight_shape, options = case
    torch.manual_seed(0)
    outs = weight_shape[1] * options.get("groups", 1) if transposed else weight_shape[0]
    tensors = [torch.randn(shape, dtype=dtype), torch.randn(weight_shape, dtype=dtype)]
    if bias:
        tensors.append(torch.randn(outs, dtype=dtype))
    there = []
    for t in tensors:
        moved = t.to(device)
        if last and t.dim() >= 4:
            f = torch.channels_last if t.dim() == 4 else torch.channels_last_3d
            moved = moved.contiguous(memory_format=f)
        there.append(moved.requires_grad_())
        t.requires_grad_()
    f = function_of(shape, transposed)
    want, got = f(*tensors, **options), f(*there, **options)
    check_close(got, want, dtype)
    if last and device == "cuda" and dtype != torch.float64 and len(shape) == 4 and shape[1] > 1:
        real = "virtual" not in torch.cuda.get_device_name().lower()
        assert not real or got.is_contiguous(memory_format=torch.channels_last)
    g = torch.randn(want.shape, dtype=dtype)
    want.backward(g)
    got.backward(g.to(device))
    for a, b in zip(there, tensors, strict=True):
        check_close(a.grad, b.grad, dtype)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_forward_and_gradients(device, case, last):
    compare(device, torch.float32, case, False, last)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed(device, case, last):
    compare(device, torch.float32, case, True, last)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_dtypes(device, dtype):
    for case in (CASES[0], CASES[2], CASES[4], CASES[5], CASES[7]):
        compare(device, dtype, case, False, bias=not dtype.is_complex)
    compare(device, dtype, TRANSPOSED[0], True, bias=not dtype.is_complex)


def test_long_sums(device):
    """So few results that the sum is divided among blocks."""
    compare(device, torch.float32, ((8, 9, 30, 30), (8, 9, 3, 3), {"padding": 1}), False)
    compare(device, torch.float32, ((1, 200, 4, 4), (10, 200, 3, 3), {"padding": 1}), False)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_integers_wrap(device, dtype):
    torch.manual_seed(0)
    x = torch.randint(0, 100, (2, 3, 9, 8)).to(dtype)
    w = torch.randint(0, 100, (5, 3, 3, 3)).to(dtype)
    want = F.conv2d(x, w, padding=1)
    assert torch.equal(F.conv2d(x.to(device), w.to(device), padding=1).cpu(), want)


def test_views(device):
    """Operands that are slices, transposed or expanded."""
    torch.manual_seed(0)
    x, w = torch.randn(2, 9, 9, 8), torch.randn(6, 4, 5, 3)
    for t in (
        lambda x, w: (x[:, 1:5], w[:, :, 1:4]),
        lambda x, w: (x.transpose(2, 3)[:, 2:6], w.transpose(2, 3)[..., :3]),
        lambda x, w: (x[:1, :4].expand(3, 4, 9, 8), w[:1].expand(5, 4, 5, 3)),
        lambda x, w: (x.permute(0, 3, 1, 2)[:, ::2], w.flip(2)),
    ):
        want, got = F.conv2d(*t(x, w)), F.conv2d(*t(x.to(device), w.to(device)))
        check_close(got, want, torch.float32)


def test_empty(device):
    x, w = torch.randn(0, 3, 8, 8), torch.randn(4, 3, 3, 3)
    a = x.to(device).requires_grad_()
    b = w.to(device).requires_grad_()
    out = F.conv2d(a, b)
    assert out.shape == (0, 4, 6, 6)
    out.sum().backward()
    assert float(b.grad.abs().sum()) == 0 and a.grad.shape == x.shape


def test_second_derivative(device):
    torch.manual_seed(0)
    x, w = (
        torch.randn(2, 3, 6, 6, dtype=torch.float64),
        torch.randn(4, 3, 3, 3, dtype=torch.float64),
    )
    answers = []
    for where in ("cpu", device):
        a, b = x.to(where).requires_grad_(), w.to(where).requires_grad_()
        y = (F.conv2d(a, b, stride=2, padding=1) ** 3).sum()
        ga, gb = torch.autograd.grad(y, (a, b), create_graph=True)
        answers.append(torch.autograd.grad((ga * ga).sum() + (gb * gb).sum(), (a, b)))
    for got, want in zip(answers[1], answers[0], strict=True):
        check_close(got, want, torch.float64)


def test_settings():
    cudnn = torch.backends.cudnn
    before = cudnn.enabled, cudnn.allow_tf32
    with cudnn.flags(enabled=False, benchmark=True, benchmark_limit=3):
        assert not cudnn.enabled and cudnn.benchmark and cudnn.benchmark_limit == 3
    assert not cudnn.benchmark and cudnn.benchmark_limit == 10
    assert (cudnn.enabled, cudnn.allow_tf32) == before


@pytest.mark.parametrize(
    "settings", [{"benchmark": True}, {"deterministic": True}, {"allow_tf32": True}]
)
def test_obeyed_settings(device, settings):
    """Each has plans of its own; the result is the same but for its precision."""
    torch.manual_seed(0)
    x, w = torch.randn(2, 8, 10, 10), torch.randn(16, 8, 3, 3)
    want = F.conv2d(x, w, padding=1)
    with torch.backends.cudnn.flags(**settings):
        for _ in range(2):
            got = F.conv2d(x.to(device), w.to(device), padding=1)
            assert float((got.cpu() - want).abs().max()) < 0.05
