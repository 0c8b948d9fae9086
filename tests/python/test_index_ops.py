"""Operators of indexing: what their samples cannot say."""

import numpy as np
import pytest

import tessera as torch

F = torch.nn.functional


def numbers(n, seed=0):
    return np.random.RandomState(seed).randint(-4, 5, n)


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 7, 50, 1000, 70_000])
def test_unique_is_numpys(n, dtype, device):
    values = numbers(n).astype(dtype)
    x = torch.from_numpy(values).to(device)
    expected = np.unique(values, return_inverse=True, return_counts=True)
    found = torch.unique(x, return_inverse=True, return_counts=True)
    for mine, theirs in zip(found, expected):
        assert mine.tolist() == theirs.tolist()
    assert torch.unique(x).tolist() == expected[0].tolist()
    out, counts = x.unique(return_counts=True)
    assert counts.tolist() == expected[2].tolist()


def test_unique_of_zeros_and_nans():
    nan = float("nan")
    x = torch.tensor([nan, 0.0, -0.0, nan, -1.0, float("inf"), -float("inf")])
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    assert repr(values.tolist()) == "[-inf, -1.0, 0.0, inf, nan, nan]"
    assert counts.tolist() == [1, 1, 2, 1, 1, 1]
    assert inverse.tolist()[1:3] == [2, 2] and sorted(inverse.tolist()) == [0, 1, 2, 2, 3, 4, 5]


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_of_slices(dim, device):
    values = numbers(60).reshape(5, 4, 3) // 4
    x = torch.from_numpy(values).to(device)
    expected = np.unique(values, axis=dim, return_inverse=True, return_counts=True)
    found = torch.unique(x, return_inverse=True, return_counts=True, dim=dim)
    for mine, theirs in zip(found, expected):
        assert mine.tolist() == theirs.squeeze().tolist() or mine.tolist() == theirs.tolist()


def test_unique_consecutive(device):
    x = torch.tensor([1, 1, 2, 2, 2, 1], device=device)
    values, inverse, counts = torch.unique_consecutive(x, True, True)
    assert values.tolist() == [1, 2, 1] and counts.tolist() == [2, 3, 1]
    assert inverse.tolist() == [0, 0, 1, 1, 1, 2]
    rows = torch.tensor([[1, 2], [1, 2], [3, 4]], device=device)
    assert rows.unique_consecutive(dim=0).tolist() == [[1, 2], [3, 4]]
    assert torch.unique_consecutive(rows).tolist() == [1, 2, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        torch.unique(torch.zeros(2, 0), dim=0)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float16", "float32", "float64"])
def test_searchsorted_is_numpys(dtype, right, device):
    edges = np.sort(numbers(40, 1)).astype(dtype)
    values = numbers(500, 2).astype(dtype)
    expected = np.searchsorted(edges, values, side="right" if right else "left")
    a, v = torch.from_numpy(edges).to(device), torch.from_numpy(values).to(device)
    assert torch.searchsorted(a, v, right=right).tolist() == expected.tolist()
    assert torch.bucketize(v, a, right=right).tolist() == expected.tolist()
    narrow = torch.searchsorted(a, v, side="right" if right else "left", out_int32=True)
    assert narrow.dtype == torch.int32 and narrow.tolist() == expected.tolist()
    shuffled = np.random.RandomState(0).permutation(40)
    back = np.argsort(edges[shuffled], kind="stable")
    found = torch.searchsorted(
        torch.from_numpy(edges[shuffled]).to(device),
        v,
        right=right,
        sorter=torch.from_numpy(back).to(device),
    )
    assert found.tolist() == expected.tolist()


def test_searchsorted_errors():
    a = torch.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="side can only be"):
        torch.searchsorted(a, a, side="middle")
    with pytest.raises(RuntimeError, match="opposites"):
        torch.searchsorted(a, a, side="left", right=True)
    with pytest.raises(RuntimeError, match="sorter index out of range"):
        torch.searchsorted(a, a, sorter=torch.tensor([0, 2]))
    with pytest.raises(RuntimeError, match="first N-1 dimensions"):
        torch.searchsorted(torch.zeros(2, 3), torch.zeros(3, 1))
    assert torch.searchsorted(a, torch.tensor([float("nan")])).tolist() == [2]


@pytest.mark.parametrize("many", [3, 100])
def test_isin(many, device):
    values, among = numbers(300, 3), numbers(many, 4) * 2
    x, y = torch.from_numpy(values).to(device), torch.from_numpy(among).to(device)
    assert torch.isin(x, y).tolist() == np.isin(values, among).tolist()
    assert torch.isin(x, y, invert=True).tolist() == np.isin(values, among, invert=True).tolist()
    assert torch.isin(x.float(), y).tolist() == np.isin(values, among).tolist()
    assert torch.isin(x, 0).tolist() == (values == 0).tolist()
    nan = torch.tensor([float("nan"), 1.0])
    assert torch.isin(nan, nan).tolist() == [False, True]


def test_bincount(device):
    x = torch.tensor([1, 3, 1], device=device)
    assert torch.bincount(x).tolist() == [0, 2, 0, 1]
    assert torch.bincount(x.to(torch.uint8), minlength=6).tolist() == [0, 2, 0, 1, 0, 0]
    weighted = torch.bincount(x, torch.tensor([0.5, 1.0, 2.0], device=device))
    assert weighted.tolist() == [0, 2.5, 0, 1] and weighted.dtype == torch.float32
    assert torch.bincount(x, torch.tensor([1, 2, 3], device=device)).dtype == torch.float64
    assert torch.bincount(x[:0]).tolist() == []
    for bad in (torch.tensor([-1]), torch.tensor([[1]]), torch.tensor([1.0])):
        with pytest.raises(RuntimeError):
            torch.bincount(bad)


def test_histograms_are_numpys():
    values = np.random.RandomState(0).standard_normal(100_000)
    weights = np.random.RandomState(1).rand(100_000)
    x, w = torch.from_numpy(values), torch.from_numpy(weights)
    expected, edges = np.histogram(values, bins=37)
    hist = torch.histogram(x, 37)
    assert hist.hist.tolist() == expected.tolist()
    assert np.allclose(hist.bin_edges.tolist(), edges)
    assert torch.histc(x, 37).tolist() == expected.tolist()
    expected, _ = np.histogram(values, bins=10, range=(-1, 2), weights=weights, density=True)
    hist, _ = torch.histogram(x, 10, range=(-1.0, 2.0), weight=w, density=True)
    assert np.allclose(hist.tolist(), expected)
    points = values.reshape(-1, 2)
    expected, edges = np.histogramdd(points, bins=(3, 5), range=((-2, 2), (-1, 1)))
    found = torch.histogramdd(torch.from_numpy(points), (3, 5), (-2.0, 2.0, -1.0, 1.0))
    assert found.hist.tolist() == expected.tolist()
    assert [np.allclose(a.tolist(), b) for a, b in zip(found.bin_edges, edges)] == [True, True]


def test_histograms_count_beyond_float32():
    """Counts are exact as long as the result can hold them."""
    hist = torch.histc(torch.zeros(1 << 18), bins=1, min=-1, max=1)
    assert hist.tolist() == [1 << 18]


def test_gather_and_scatter_errors():
    x = torch.zeros(2, 3)
    at = torch.tensor([[0, 3, 0]])
    for call in (lambda: x.gather(1, at), lambda: x.scatter_(1, at, 1.0)):
        with pytest.raises(
            RuntimeError, match="index 3 is out of bounds for dimension 1 with size 3"
        ):
            call()
    with pytest.raises(RuntimeError, match="index -1 is out of bounds"):
        x.gather(1, torch.tensor([[-1]]))
    assert not any(map(any, x.tolist()))
    with pytest.raises(RuntimeError, match="reduce argument must be either add or multiply"):
        x.scatter(1, at, 1.0, reduce="sum")
    with pytest.raises(RuntimeError, match="sum, prod, mean, amax or amin"):
        x.scatter_reduce(1, at, x, "add")


def test_the_source_of_scatter_may_be_larger():
    src = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    out = torch.zeros(2, 3).scatter(1, torch.tensor([[2]]), src)
    assert out.tolist() == [[0, 0, 1], [0, 0, 0]]
    (out * 5.0).sum().backward()
    assert src.grad.tolist() == [[5, 0], [0, 0]]


@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_by_loops(how, include_self, device):
    start, values = numbers(6, 5).reshape(2, 3), numbers(8, 6).reshape(2, 4)
    at = np.abs(numbers(8, 7)).reshape(2, 4) % 3
    expected = start.copy()
    for r in range(2):
        for c in range(3):
            landed = [int(v) for v, i in zip(values[r], at[r]) if i == c]
            if not landed:
                continue
            landed = [int(start[r, c])] * include_self + landed
            expected[r, c] = {
                "sum": sum(landed),
                "prod": int(np.prod(landed)),
                "mean": sum(landed) // len(landed),
                "amax": max(landed),
                "amin": min(landed),
            }[how]
    t = [torch.from_numpy(a).to(device) for a in (start, at, values)]
    out = t[0].scatter_reduce(1, t[1], t[2], how, include_self=include_self)
    assert out.tolist() == expected.tolist()


def test_products_with_zeros_have_gradients():
    x = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    v = torch.tensor([0.0, 4.0, 0.0, 5.0, 0.0], dtype=torch.float64, requires_grad=True)
    at = torch.tensor([0, 0, 1, 1, 1])
    for out in (x.scatter_reduce(0, at, v, "prod"), x.index_reduce(0, at, v, "prod")):
        gx, gv = torch.autograd.grad(out.sum(), (x, v))
        assert gx.tolist() == [0, 0]
        assert gv.tolist() == [8, 0, 0, 0, 0]


def test_index_select_words_and_ranges():
    x = torch.zeros(3, 2)
    for call in (
        lambda: x.index_select(0, torch.tensor([3])),
        lambda: x.index_add_(0, torch.tensor([-1]), torch.ones(1, 2)),
        lambda: F.embedding(torch.tensor([3]), x),
    ):
        with pytest.raises(IndexError, match="index out of range in self"):
            call()
    with pytest.raises(IndexError, match="tried to access index 6 on a tensor of 6 elements"):
        x.take(torch.tensor([6]))
    with pytest.raises(IndexError, match="index_copy_"):
        x.index_copy_(0, torch.tensor([5]), torch.ones(1, 2))
    assert not any(map(any, x.tolist()))
    assert x.index_fill(0, torch.tensor([-1]), 7.0).tolist() == [[0, 0], [0, 0], [7, 7]]
    value = torch.tensor(7.0, requires_grad=True)
    x.index_fill(0, torch.tensor([-1]), value).sum().backward()
    assert value.grad.item() == 2


def test_overlapping_sources_are_refused():
    x = torch.zeros(3)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.index_add_(0, torch.tensor([0, 1, 2]), x)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.scatter_(0, torch.tensor([0, 1, 2]), x)
    y = torch.tensor([1.0, 2.0, 3.0, 4.0])
    y[::2].index_add_(0, torch.tensor([0]), y[1::2][:1])  # apart, though in one storage
    assert y.tolist() == [3, 2, 3, 4]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(dtype, device):
    values = (numbers(12, 8) + 1j * numbers(12, 9)).reshape(3, 4).astype(dtype)
    x = torch.from_numpy(values).to(device)
    at = torch.tensor([2, 0, 2], device=device)
    assert x[at].tolist() == values[[2, 0, 2]].tolist()
    assert x.t()[at].tolist() == values.T[[2, 0, 2]].tolist()
    expected = values.copy()
    np.add.at(expected, [2, 0, 2], values)
    assert x.index_add(0, at, x).tolist() == expected.tolist()
    assert x.index_put((at,), x, accumulate=True).tolist() == expected.tolist()
    assert x.nonzero().tolist() == np.argwhere(values).tolist()
    with pytest.raises((RuntimeError, NotImplementedError)):
        x.scatter_reduce(0, torch.zeros_like(x, dtype=torch.int64), x, "amax")


def test_nonzero_forms(device):
    values = numbers(40_000, 10).reshape(100, 400) // 3
    x = torch.from_numpy(values).to(device)
    expected = np.argwhere(values).tolist()
    assert torch.nonzero(x).tolist() == expected and x.t().t().nonzero().tolist() == expected
    assert [t.tolist() for t in x.nonzero(as_tuple=True)] == [a.tolist() for a in values.nonzero()]
    assert torch.nonzero(x.t()).tolist() == np.argwhere(values.T).tolist()
    assert torch.nonzero_static(x, size=2).tolist() == expected[:2]
    assert torch.tensor(3.0).nonzero().shape == (1, 0)
    assert x[x == 1].tolist() == values[values == 1].tolist()
    assert x.t()[x.t() == 1].tolist() == values.T[values.T == 1].tolist()
    assert torch.masked_select(x, x == 1).tolist() == values[values == 1].tolist()


def test_masked_scatter_needs_enough(device):
    x = torch.zeros(3, device=device)
    mask = torch.tensor([True, True, False], device=device)
    with pytest.raises(RuntimeError, match="number of elements of source"):
        x.masked_scatter_(mask, torch.ones(1, device=device))
    src = torch.tensor([5.0, 6.0, 7.0], requires_grad=True)
    out = torch.zeros(3).masked_scatter(mask.cpu(), src)
    assert out.tolist() == [5, 6, 0]
    out.sum().backward()
    assert src.grad.tolist() == [1, 1, 0]


def test_masked_fill_of_numbers_that_do_not_fit():
    x = torch.zeros(2, dtype=torch.int8)
    mask = torch.tensor([True, False])
    with pytest.raises(RuntimeError, match="without overflow"):
        x.masked_fill_(mask, 200)
    with pytest.raises(RuntimeError, match="boolean masks"):
        x.masked_fill_(mask.to(torch.int64), 1)
    assert x.masked_fill_(mask, 2.9).tolist() == [2, 0]


def test_embedding(device):
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0], [6.0, 8.0]], device=device, requires_grad=True)
    at = torch.tensor([[0, 2], [2, 1]], device=device)
    out = F.embedding(at, table, padding_idx=-2)
    assert out.tolist() == [[[1, 2], [6, 8]], [[6, 8], [3, 4]]]
    out.sum().backward()
    assert table.grad.tolist() == [[1, 1], [0, 0], [2, 2]]
    table.grad = None
    F.embedding(at, table, scale_grad_by_freq=True).sum().backward()
    assert table.grad.tolist() == [[1, 1], [1, 1], [1, 1]]
    with pytest.raises(NotImplementedError, match="sparse"):
        F.embedding(at, table, sparse=True).sum().backward()
    version = table._version
    limited = F.embedding(at[:, 1], table, max_norm=5.0)
    assert table._version > version and limited.requires_grad
    assert [round(v, 4) for v in table[2].tolist()] == [3, 4]  # was longer: brought to 5
    assert table[0].tolist() == [1, 2]  # not looked up


def test_embedding_bags():
    table = torch.tensor([[1.0, 2.0], [3.0, 1.0], [6.0, 0.0]], requires_grad=True)
    at = torch.tensor([0, 2, 1, 1])
    offsets = torch.tensor([0, 2, 2])
    assert F.embedding_bag(at, table, offsets, mode="sum").tolist() == [[7, 2], [0, 0], [6, 2]]
    assert F.embedding_bag(at, table, offsets).tolist() == [[3.5, 1], [0, 0], [3, 1]]
    assert F.embedding_bag(at, table, offsets, mode="max").tolist() == [[6, 2], [0, 0], [3, 1]]
    skipped = F.embedding_bag(at, table, offsets, padding_idx=2)
    assert skipped.tolist() == [[1, 2], [0, 0], [3, 1]]
    ends = F.embedding_bag(at, table, torch.tensor([0, 2, 4]), mode="sum", include_last_offset=True)
    assert ends.tolist() == [[7, 2], [6, 2]]
    with pytest.raises(RuntimeError, match=r"offsets\[0\] has to be 0"):
        F.embedding_bag(at, table, torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="mode has to be"):
        F.embedding_bag(at, table, offsets, mode="min")
    F.embedding_bag(at, table, offsets, mode="max").sum().backward()
    assert table.grad.tolist() == [[0, 1], [1, 1], [1, 0]]


def test_segments():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    lengths = torch.tensor([1, 0, 3])
    reduce = torch.segment_reduce
    assert reduce(x, "sum", lengths=lengths).tolist() == [1, 0, 9]
    assert reduce(x, "max", lengths=lengths).tolist() == [1, -float("inf"), 4]
    assert repr(reduce(x, "mean", lengths=lengths).tolist()) == "[1.0, nan, 3.0]"
    assert reduce(x, "mean", lengths=lengths, initial=3).tolist() == [4, 3, 4]
    assert reduce(x, "prod", offsets=torch.tensor([0, 2, 4])).tolist() == [2, 12]
    part = reduce(x, "sum", offsets=torch.tensor([1, 3]), unsafe=True)
    assert part.tolist() == [5]
    part.sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 0]
    with pytest.raises(RuntimeError, match="sum to"):
        reduce(x, "sum", lengths=torch.tensor([1, 1]))
    with pytest.raises(RuntimeError, match="negative"):
        reduce(x, "sum", lengths=torch.tensor([5, -1]))
    with pytest.raises(RuntimeError, match="Either lengths or offsets"):
        reduce(x, "sum")


def test_what_has_no_derivative_says_so():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for out in (torch.histc(x, 2), torch.unique(x), torch.histogram(x, 2).hist):
        with pytest.raises(NotImplementedError, match="not implemented"):
            out.sum().backward()


def test_index_add_of_bools_takes_a_factor(device):
    source = torch.tensor([True, True, False, True], device=device)
    empty = torch.zeros(4, dtype=torch.bool, device=device)
    out = empty.index_add(0, torch.arange(4, device=device), source, alpha=2)
    assert out.dtype == torch.bool and out.tolist() == [True, True, False, True]
