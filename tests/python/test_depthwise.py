"""Convolutions with one input channel in each group are what each channel's own convolution is;
counts of integers are what sums of ones are."""

import random

import pytest

import tessera as torch
from tessera.nn import functional as F


def shapes(seed):
    """Any kernel, stride, padding, dilation and multiplier; the input is large enough."""
    of = random.Random(seed)
    dims = of.choice([1, 2, 2, 3])
    kernel = [of.randint(1, 4) if of.random() < 0.6 else 3 for _ in range(dims)]
    how = {
        "stride": [of.randint(1, 3) for _ in range(dims)],
        "padding": [of.randint(0, 3) for _ in range(dims)],
        "dilation": [of.randint(1, 2) for _ in range(dims)],
    }
    sizes = [of.randint(8, 40 if dims < 3 else 10) for _ in range(dims)]
    return of.randint(1, 3), of.randint(2, 5), of.choice([1, 1, 2, 3]), kernel, sizes, how


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(30))
def test_depthwise_is_each_channels_own_convolution(seed, dtype):
    batch, channels, each, kernel, sizes, how = shapes(seed)
    torch.manual_seed(seed)
    x = torch.randn(batch, channels, *sizes, dtype=dtype)
    w = torch.randn(channels * each, 1, *kernel, dtype=dtype)
    bias = torch.randn(channels * each, dtype=dtype)
    conv = getattr(F, f"conv{len(sizes)}d")

    def whole(x, w, bias):
        return conv(x, w, bias, groups=channels, **how)

    def one_by_one(x, w, bias):
        parts = [slice(c * each, (c + 1) * each) for c in range(channels)]
        return torch.cat(
            [conv(x[:, c : c + 1], w[p], bias[p], **how) for c, p in enumerate(parts)], 1
        )

    results = []
    for f in (whole, one_by_one):
        leaves = [t.clone().requires_grad_() for t in (x, w, bias)]
        y = f(*leaves)
        torch.manual_seed(seed)
        y.backward(torch.randn_like(y))
        results.append([y.detach()] + [t.grad for t in leaves])
    for got, want in zip(*results):
        assert got.shape == want.shape
        scale = float(want.abs().max())
        assert float((got - want).abs().max()) <= scale * (
            1e-5 if dtype == torch.float32 else 1e-13
        )


@pytest.mark.parametrize("length", [0, 1, 100, 40000, 300000])
@pytest.mark.parametrize("values", [1, 7, 5000, 200000])
def test_counts_are_sums_of_ones(length, values):
    torch.manual_seed(length + values)
    x = torch.randint(0, values, (length,))
    want = torch.bincount(x, torch.ones(length, dtype=torch.float64), minlength=5).long()
    assert torch.equal(torch.bincount(x, minlength=5), want)
    assert torch.equal(torch.bincount(x.int(), minlength=5), want)
    strided = torch.stack([x, x], 1)[:, 1]
    assert torch.equal(torch.bincount(strided, minlength=5), want)
