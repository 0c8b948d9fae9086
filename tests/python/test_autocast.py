"""autocast: which operators run in which precision, and when."""

import tessera as torch
from tessera import nn


def test_attention_runs_in_lower_precision(device):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 5, 4, device=device, requires_grad=True) for _ in range(3))
    mask = torch.randn(5, 5, device=device)
    for extra in ({}, {"is_causal": True}, {"attn_mask": mask}, {"attn_mask": mask > 0}):
        with torch.autocast(device, dtype=torch.bfloat16):
            out = nn.functional.scaled_dot_product_attention(q, k, v, **extra)
            # Parts in different precisions, as a cache of keys and values may have them.
            mixed = nn.functional.scaled_dot_product_attention(q, k.bfloat16(), v, **extra)
        assert out.dtype == mixed.dtype == torch.bfloat16
        halves = {n: m.bfloat16() if m is mask else m for n, m in extra.items()}
        plain = nn.functional.scaled_dot_product_attention(
            q.bfloat16(), k.bfloat16(), v.bfloat16(), **halves
        )
        assert torch.equal(out, plain) and torch.equal(mixed, plain)
        got = torch.autograd.grad(out.float().sum(), (q, k, v))
        wanted = torch.autograd.grad(plain.float().sum(), (q, k, v))
        for a, b in zip(got, wanted):
            assert a.dtype == torch.float32 and torch.equal(a, b)
