"""Fused attention on a real GPU: which shapes cuDNN takes, are the numbers right, how fast is it.

python tools/gpu/attention_check.py            all of it, under 40 s
python tools/gpu/attention_check.py times      the times alone
"""

import math
import os
import sys
import time

os.environ["TESSERA_CUDNN"] = "must"  # a refusal is an error that names descriptor and attribute
import tessera as torch
import tessera.nn.functional as F
from tessera.nn.attention import SDPBackend, sdpa_kernel

BF16, F16 = torch.bfloat16, torch.float16
# batch, heads, heads of keys, queries, keys, width, width of values, dtype, causal, layout
GRID = [
    (2, 4, 4, 128, 128, 64, 64, BF16, True, "packed"),
    (2, 4, 4, 128, 128, 64, 64, F16, False, "packed"),
    (2, 4, 4, 128, 128, 64, 64, F16, True, "heads"),
    (2, 12, 12, 1024, 1024, 64, 64, BF16, True, "packed"),
    (2, 8, 2, 256, 256, 128, 128, BF16, True, "rows"),
    (2, 8, 1, 256, 256, 64, 64, F16, False, "rows"),
    (2, 4, 4, 77, 77, 64, 64, BF16, True, "rows"),
    (2, 4, 4, 77, 200, 64, 64, BF16, False, "heads"),
    (2, 4, 4, 100, 200, 64, 64, F16, True, "rows"),
    (2, 4, 4, 200, 100, 64, 64, F16, True, "rows"),
    (3, 4, 4, 1, 77, 64, 64, BF16, False, "rows"),
    (3, 4, 2, 1, 300, 128, 128, F16, False, "heads"),
    (1, 1, 1, 5, 5, 8, 8, F16, True, "rows"),
    (2, 4, 4, 96, 96, 72, 72, BF16, True, "rows"),
    (2, 4, 4, 96, 96, 80, 40, BF16, False, "rows"),
    (1, 4, 4, 160, 160, 192, 192, BF16, True, "rows"),
    (1, 4, 4, 160, 160, 256, 256, BF16, True, "packed"),
    (1, 2, 2, 4096, 4096, 128, 128, BF16, True, "packed"),
]
LIMIT = {BF16: 1.6e-2, F16: 2e-3}  # of an error relative to the largest number


def make(size, layout, dtype):
    b, h, n, d = size
    if layout == "heads":  # [batch, heads, length, width] as it lies
        return torch.randn(b, h, n, d, device="cuda").to(dtype).requires_grad_()
    if layout == "rows":  # [batch, length, heads, width]
        return torch.randn(b, n, h, d, device="cuda").to(dtype).transpose(1, 2).requires_grad_()
    whole = torch.randn(b, n, 3, h, d, device="cuda").to(dtype)
    return whole[:, :, 1].transpose(1, 2).requires_grad_()


def error_of(a, b):
    a, b = a.detach().float(), b.detach().float()
    return float((a - b).abs().max() / b.abs().max().clamp(min=1e-6))


def is_fused(out):
    return "fused" in out.grad_fn.name().lower()


def check(case, deterministic=False):
    b, h, hk, t, s, d, dv, dtype, causal, layout = case
    torch.manual_seed(0)
    q = make((b, h, t, d), layout, dtype)
    k, v = make((b, hk, s, d), layout, dtype), make((b, hk, s, dv), layout, dtype)
    options = {"is_causal": causal, "enable_gqa": h != hk}
    begin = time.perf_counter()
    with torch.backends.cudnn.flags(deterministic=deterministic):
        out = F.scaled_dot_product_attention(q, k, v, **options)
        grad = torch.randn(*out.shape, device="cuda").to(dtype)
        got = [out, *torch.autograd.grad(out, [q, k, v], grad)]
    torch.cuda.synchronize()
    took = time.perf_counter() - begin
    wide = [x.detach().float().requires_grad_() for x in (q, k, v)]
    plain = F.scaled_dot_product_attention(*wide, **options)
    want = [plain, *torch.autograd.grad(plain, wide, grad.float())]
    errors = [error_of(a, w) for a, w in zip(got, want, strict=True)]
    # Cancellation makes a gradient's error larger than that of the numbers it is made of.
    good = is_fused(out) and all(e <= LIMIT[dtype] for e in errors) and not math.isnan(sum(errors))
    return good, is_fused(out), errors, took


def run_grid():
    bad = 0
    for case, deterministic in [(c, False) for c in GRID] + [(GRID[0], True), (GRID[4], True)]:
        name = " ".join(str(x).replace("torch.", "") for x in case) + (" det" * deterministic)
        try:
            good, fused, errors, took = check(case, deterministic)
            text = f"{'fused' if fused else 'PLAIN'} out {errors[0]:.1e} " + " ".join(
                f"d{n} {e:.1e}" for n, e in zip("qkv", errors[1:], strict=True)
            )
            print(f"{'ok ' if good else 'BAD'} {name}: {text} ({took:.2f} s)")
        except Exception as e:
            good = False
            if "need cuDNN" in str(e):
                print(f"--  {name}: this cuDNN is not asked")
                continue
            print(f"BAD {name}: {type(e).__name__}: {str(e)[:700]}")
        bad += not good
    print(f"{bad} of {len(GRID) + 2} are not right")
    return bad


def best_of(f, sync, repeats=30):
    for _ in range(3):
        f()
    sync()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(repeats):
            f()
        sync()
        times.append((time.perf_counter() - begin) / repeats)
    return min(times) * 1e6


def gpt2(t, attention, shape):
    b, h, n, d = shape
    qkv = t.randn(b, n, 3 * h * d, device="cuda", dtype=t.bfloat16).requires_grad_()
    views = [x.view(b, n, h, d).transpose(1, 2) for x in qkv.split(h * d, dim=2)]
    leaves = [x.detach().requires_grad_() for x in views]
    grad = t.randn(b, n, h, d, device="cuda", dtype=t.bfloat16).transpose(1, 2)

    def forward():
        with t.no_grad():
            attention(*leaves, is_causal=True)

    def both():
        t.autograd.grad(attention(*leaves, is_causal=True), leaves, grad)

    forward_us = best_of(forward, t.cuda.synchronize)
    return forward_us, best_of(both, t.cuda.synchronize)


SHAPES = [(16, 12, 1024, 64), (4, 16, 4096, 128)]


def time_ways(module, ways, choose, attention):
    for shape, name, way in ways:
        try:
            with choose(way):
                report(shape, name, *gpt2(module, attention, shape))
        except Exception as e:
            print(f"{shape} {name}: {type(e).__name__}: {str(e)[:700]}")


def tell_times():
    fused, plain = SDPBackend.CUDNN_ATTENTION, SDPBackend.MATH
    ways = [(shape, "fused", fused) for shape in SHAPES] + [(SHAPES[0], "plain", plain)]
    time_ways(torch, ways, sdpa_kernel, F.scaled_dot_product_attention)
    try:
        import torch as peer
        from torch.nn import attention as peers
    except ImportError:
        return
    names = ("CUDNN_ATTENTION", "FLASH_ATTENTION")
    ways = [(s, f"PyTorch {n}", getattr(peers.SDPBackend, n)) for s in SHAPES for n in names]
    time_ways(peer, ways, peers.sdpa_kernel, peer.nn.functional.scaled_dot_product_attention)


def report(shape, name, forward, both):
    b, h, n, d = shape
    flops = 4 * b * h * n * n * d / 2  # causal: half of the square
    rates = flops / forward * 1e-6, 3.5 * flops / both * 1e-6
    print(
        f"{shape} {name}: forward {forward:.0f} us ({rates[0]:.0f} TFLOP/s), "
        f"with gradient {both:.0f} us ({rates[1]:.0f} TFLOP/s)"
    )


if __name__ == "__main__":
    print(f"cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name(0)}")
    failed = 0 if "times" in sys.argv[1:] else run_grid()
    if "grid" not in sys.argv[1:]:
        tell_times()
    sys.exit(1 if failed else 0)
