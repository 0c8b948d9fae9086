"""Attention on the device against float32 on the CPU: fused where it can be, plain where not."""

import pytest

import tessera as torch
import tessera.nn.functional as F
from tessera.nn.attention import SDPBackend, sdpa_kernel

TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2}


def has_fused(device, whole_tiles=False):
    """Older versions of cuDNN are only asked for lengths that are multiples of 128."""
    if torch.device(device).type != "cuda" or not torch.backends.cudnn.is_available():
        return False
    return whole_tiles or torch.backends.cudnn.version() >= 91600


def is_fused(out):
    node = out.grad_fn
    if "Squeeze" in node.name():  # three dimensions were four for a while
        node = node.next_functions[0][0]
    return "fused" in node.name().lower()


def packed(shape, device, dtype, seed=0):
    """Queries, keys and values as a model has them: views of one buffer."""
    b, h, t, d = shape
    torch.manual_seed(seed)
    qkv = torch.randn(b, t, 3 * h * d).to(dtype).to(device).requires_grad_()
    return qkv, [x.view(b, t, h, d).transpose(1, 2) for x in qkv.split(h * d, dim=2)]


def apart(shapes, device, dtype):
    torch.manual_seed(1)
    return [torch.randn(*s).to(dtype).to(device).requires_grad_() for s in shapes]


def reference(tensors, options):
    wide = [x.detach().cpu().float().requires_grad_() for x in tensors]
    out = F.scaled_dot_product_attention(*wide, **options)
    torch.manual_seed(2)
    grad = torch.randn(*out.shape)
    out.backward(grad)
    return out, grad, [x.grad for x in wide]


def check_close(a, b, dtype):
    a = a.detach().cpu().float()
    assert a.shape == b.shape
    assert float((a - b).abs().max()) <= TOLERANCE[dtype] * (1 + float(b.abs().max()))


def compare(tensors, options, fused, leaves=None):
    dtype = tensors[0].dtype
    want, grad, grads = reference(tensors, options)
    out = F.scaled_dot_product_attention(*tensors, **options)
    assert is_fused(out) == fused and out.dtype == dtype
    check_close(out, want, dtype)
    inputs = leaves or tensors
    got = torch.autograd.grad(out, inputs, grad.to(dtype).to(out.device))
    for g, w in zip(got, grads, strict=True):
        check_close(g, w, dtype)
    return out, got


SHAPES = [
    # batch, heads, heads of keys, queries, keys, width, width of values
    (2, 3, 3, 17, 17, 16, 16),
    (1, 4, 2, 8, 24, 8, 24),
    (2, 4, 1, 33, 5, 64, 64),
    (1, 2, 2, 1, 9, 40, 40),
    (1, 1, 1, 20, 20, 136, 136),
]


@pytest.mark.parametrize("causal", [False, True])
def test_whole_tiles(causal, device):
    _, views = packed((1, 2, 128, 64), device, torch.bfloat16)
    compare(views, {"is_causal": causal}, has_fused(device, whole_tiles=True))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(device, dtype, causal, shape):
    b, h, hk, t, s, d, dv = shape
    tensors = apart([(b, h, t, d), (b, hk, s, d), (b, hk, s, dv)], device, dtype)
    options = {"is_causal": causal, "enable_gqa": h != hk}
    compare(tensors, options, has_fused(device))


def test_views_of_one_buffer(device):
    qkv, views = packed((2, 3, 12, 16), device, torch.bfloat16)
    out, grads = compare(views, {"is_causal": True, "scale": 0.3}, has_fused(device))
    if has_fused(device):
        # Nothing was copied on the way in, and nothing is on the way out.
        assert out.transpose(1, 2).is_contiguous()
        assert all(g.transpose(1, 2).is_contiguous() for g in grads)
    (whole,) = torch.autograd.grad(
        F.scaled_dot_product_attention(*views, is_causal=True).sum(), [qkv]
    )
    _, _, plain = reference(views, {"is_causal": True})
    assert whole.shape == qkv.shape and len(plain) == 3


def test_layouts(device):
    """What the kernel cannot read as it lies is copied."""
    dtype, fused = torch.float16, has_fused(device)
    q, k, v = apart([(2, 3, 9, 16)] * 3, device, dtype)
    odd = torch.zeros(2 * 3 * 9 * 16 + 1, dtype=dtype, device=device)
    with torch.no_grad():
        odd[1:].copy_(k.reshape(-1))
    compare([q, odd[1:].view(2, 3, 9, 16).requires_grad_(), v], {}, fused)  # starts at an odd place
    across = q.detach().transpose(2, 3).contiguous().transpose(2, 3).requires_grad_()
    compare([across, k, v], {}, fused)
    spread = k.detach()[:, :1].expand(2, 3, 9, 16).requires_grad_()
    compare([q, spread, v], {}, fused)
    three = [x.detach()[0].requires_grad_() for x in (q, k, v)]
    out, _ = compare(three, {"is_causal": True}, fused)
    assert out.is_contiguous()


def test_what_stays_plain(device):
    dtype = torch.float16
    q, k, v = apart([(1, 2, 6, 16)] * 3, device, dtype)
    compare([q, k, v], {"attn_mask": None, "dropout_p": 0.0}, has_fused(device))
    mask = torch.ones(6, 6, dtype=torch.bool, device=device).tril()
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert not is_fused(out)
    compare(apart([(1, 2, 6, 12)] * 3, device, dtype), {}, False)  # no multiple of 8
    wide = [x.detach().float().requires_grad_() for x in (q, k, v)]
    assert not is_fused(F.scaled_dot_product_attention(*wide))
    empty = [x.detach()[:, :, :0].requires_grad_() for x in (q, k, v)]
    assert F.scaled_dot_product_attention(*empty).shape == (1, 2, 0, 16)


def test_settings(device):
    dtype, fused = torch.bfloat16, has_fused(device)
    q, k, v = apart([(1, 2, 6, 16)] * 3, device, dtype)

    def now():
        return is_fused(F.scaled_dot_product_attention(q, k, v))

    assert now() == fused
    with sdpa_kernel(SDPBackend.MATH):
        assert not now() and not torch.backends.cuda.flash_sdp_enabled()
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
            assert now() == fused
        assert not now()
    for one in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(one):
            assert now() == fused
    with torch.backends.cudnn.flags(enabled=False):
        assert not now()
    assert now() == fused and torch.backends.cuda.flash_sdp_enabled()


def test_deterministic(device):
    tensors = apart([(2, 2, 16, 16)] * 3, device, torch.bfloat16)
    with torch.backends.cudnn.flags(deterministic=True):
        compare(tensors, {"is_causal": True}, has_fused(device))


def test_second_derivative(device):
    q, k, v = apart([(1, 1, 4, 8)] * 3, device, torch.bfloat16)
    out = F.scaled_dot_product_attention(q, k, v)
    (g,) = torch.autograd.grad(out.float().square().sum(), [q], create_graph=True)
    if has_fused(device):
        with pytest.raises(NotImplementedError, match="_fused_attention_backward"):
            g.sum().backward()
    else:
        g.sum().backward()
    with sdpa_kernel(SDPBackend.MATH):
        out = F.scaled_dot_product_attention(q, k, v)
        (g,) = torch.autograd.grad(out.float().square().sum(), [q], create_graph=True)
        g.sum().backward()


def test_no_gradient(device):
    q, k, v = (x.detach() for x in apart([(1, 2, 7, 8)] * 3, device, torch.float16))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    want = F.scaled_dot_product_attention(*(x.cpu().float() for x in (q, k, v)), is_causal=True)
    check_close(out, want, torch.float16)
