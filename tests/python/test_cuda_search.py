"""Positions in sorted sequences, membership and histograms, beside the CPU's."""

import math

import pytest

import tessera as torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def numbers(n, dtype):
    values = torch.arange(n) * 7919 % 101
    return (values if dtype == torch.uint8 else values - 50).to(dtype)


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape and torch.equal(got.cpu(), want)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("int32", [False, True])
def test_searchsorted(device, dtype, right, int32):
    sequence, values = numbers(77, dtype).sort().values, numbers(1001, dtype)
    if dtype in FLOATS:
        values[::50] = math.nan
    options = {"right": right, "out_int32": int32}

    def at(t):
        return t.to(device)

    same(
        torch.searchsorted(at(sequence), at(values), **options),
        torch.searchsorted(sequence, values, **options),
    )
    rows, wanted = sequence[:75].reshape(3, 25), values[:99].reshape(3, 33)
    same(
        torch.searchsorted(at(rows), at(wanted), **options),
        torch.searchsorted(rows, wanted, **options),
    )
    mixed = numbers(77, dtype)
    sorter = mixed.argsort()
    same(
        torch.searchsorted(at(mixed), at(values), sorter=at(sorter), **options),
        torch.searchsorted(mixed, values, sorter=sorter, **options),
    )
    same(
        torch.bucketize(at(values), at(sequence[:0]), **options),
        torch.bucketize(values, sequence[:0], **options),
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool])
@pytest.mark.parametrize("known", [0, 1, 5, 16, 17, 300])
@pytest.mark.parametrize("invert", [False, True])
def test_isin(device, dtype, known, invert):
    x, among = numbers(1003, dtype).reshape(17, 59), numbers(known, dtype) * (known % 2 + 1)
    if dtype in FLOATS:
        x[::3, ::5] = math.nan
        x[::3, 1::5] = -0.0
        among[: known // 2 : 3] = math.nan
    same(
        torch.isin(x.to(device), among.to(device), invert=invert),
        torch.isin(x, among, invert=invert),
    )


def test_isin_of_every_word(device):
    """Also the one that marks a free place of the table."""
    x = torch.tensor([-1, 0, 1, 2**63 - 1, -(2**63)])
    among = torch.arange(20) + 2
    for extra in (-1, 2**63 - 1, -(2**63)):
        both = torch.cat([among, torch.tensor([extra])])
        same(torch.isin(x.to(device), both.to(device)), torch.isin(x, both))
    same(torch.isin(x.to(device), among.to(device)), torch.isin(x, among))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bins", [1, 7, 100, 5000])
def test_histc(device, dtype, bins):
    x = torch.sin(torch.arange(3001, dtype=torch.float64)).to(dtype)
    x[::100] = math.nan
    if dtype in (torch.float16, torch.bfloat16) and bins == 5000:
        return  # the edges are not distinct
    same(torch.histc(x.to(device), bins, -0.9, 0.8), torch.histc(x, bins, -0.9, 0.8))


@pytest.mark.parametrize("dtype", FLOATS[:2])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogram(device, dtype, weighted):
    x = torch.sin(torch.arange(3001, dtype=torch.float64)).to(dtype)
    weight = torch.cos(torch.arange(3001, dtype=torch.float64)).to(dtype) if weighted else None
    edges = torch.tensor([-0.9, -0.5, 0.25, 0.3, 1.0], dtype=dtype)

    def both(f):
        got, want = f(device), f("cpu")
        for a, b in zip(got, want, strict=True):
            assert torch.allclose(a.cpu(), b, rtol=1e-6, atol=1e-6)

    def at(t, where):
        return None if t is None else t.to(where)

    both(lambda w: torch.histogram(x.to(w), edges.to(w), weight=at(weight, w)))
    both(lambda w: torch.histogram(x.to(w), 30, range=(-0.7, 0.9), weight=at(weight, w)))
    points, of_points = x[:3000].reshape(1000, 3), None if weight is None else weight[:1000]
    for f in (
        lambda w: torch.histogramdd(points.to(w), [4, 5, 6], weight=at(of_points, w)),
        lambda w: torch.histogramdd(points.to(w), [edges.to(w)] * 3, weight=at(of_points, w)),
    ):
        got, want = f(device), f("cpu")
        assert torch.allclose(got.hist.cpu(), want.hist, rtol=1e-6, atol=1e-6)
