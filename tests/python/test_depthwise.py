"""Convolutions with one input channel in each group are what each channel's own convolution is,
others what their definition says, with and without libraries; counts of integers are what sums of
ones are."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import tessera as torch
from tessera.nn import functional as F
from tessera.profiler import ProfilerActivity, profile


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


def unfolded(x, w, bias, how):
    """A convolution as it is defined, in float64."""
    x, w, bias = (t.to(torch.float64) for t in (x, w, bias))
    kernel = list(w.shape[2:])
    columns = F.unfold(x, kernel, **how)
    out = w.flatten(1) @ columns + bias[:, None]
    sizes = [
        (x.shape[2 + d] + 2 * how["padding"][d] - how["dilation"][d] * (kernel[d] - 1) - 1)
        // how["stride"][d]
        + 1
        for d in range(2)
    ]
    return out.reshape(x.shape[0], w.shape[0], *sizes)


LIBRARIES = {"with oneDNN": {}, "without": {"TESSERA_ONEDNN": "0", "TESSERA_BLAS": "none"}}


@pytest.mark.parametrize("library", LIBRARIES)
def test_convolutions_without_libraries(library):
    # In a process of its own: libraries are looked for once.
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import test_depthwise
test_depthwise.check_convolutions()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parent)],
        env=os.environ | LIBRARIES[library],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def check_convolutions():
    torch.manual_seed(0)
    cases = [
        (2, 3, 5, (3, 3), (17, 19), (1, 1), (1, 1), (1, 1)),
        (1, 64, 40, (1, 1), (23, 9), (1, 1), (0, 0), (1, 1)),
        (3, 33, 18, (5, 2), (20, 31), (2, 3), (2, 1), (1, 2)),
        (2, 200, 300, (3, 3), (14, 14), (1, 1), (1, 1), (1, 1)),
    ]
    for batch, c, o, kernel, sizes, stride, padding, dilation in cases:
        how = {"stride": stride, "padding": padding, "dilation": dilation}
        for dtype in (torch.float32, torch.float64):
            x = torch.randn(batch, c, *sizes, dtype=dtype, requires_grad=True)
            w = torch.randn(o, c, *kernel, dtype=dtype, requires_grad=True)
            bias = torch.randn(o, dtype=dtype, requires_grad=True)
            y = F.conv2d(x, w, bias, **how)
            wanted = unfolded(x, w, bias, how)
            size = wanted.abs().max().item()
            close = 2e-6 if dtype == torch.float32 else 1e-14
            assert (y.to(torch.float64) - wanted).abs().max().item() <= close * size
            g = torch.randn_like(y)
            mine = torch.autograd.grad(y, (x, w, bias), g)
            theirs = torch.autograd.grad(wanted, (x, w, bias), g.to(torch.float64))
            for a, b in zip(mine, theirs):
                off = (a.to(torch.float64) - b.to(torch.float64)).abs().max().item()
                assert off <= 4 * close * b.abs().max().item(), (dtype, a.shape, off)


def test_a_convolution_copies_nothing():
    conv = torch.nn.Conv2d(8, 8, 3)
    x = torch.randn(2, 8, 10, 10, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        conv(x).sum().backward()
    names = {event.key for event in seen.key_averages()}
    assert "aten::convolution" in names and "aten::_to_copy" not in names, names
