"""sort, topk, kthvalue, median, mode and the arg-reductions against NumPy: all dtypes, layouts that
take every path of the kernels, ties, NaN, and the same bits on any number of threads."""

import subprocess
import sys

import numpy as np
import pytest

import tessera as torch

INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
# (shape, dimension): short and long rows, columns, one dimension in the middle, long single lines.
PLACES = [
    ((7,), 0),
    ((300,), 0),
    ((70000,), 0),
    ((5, 33), 1),
    ((33, 5), 0),
    ((3, 200, 7), 1),
    ((150, 4), 0),
    ((2, 130, 140), 1),
]


def values(shape, dtype, seed=0):
    low = 0 if dtype in ("bool", "uint8") else -20
    numbers = np.random.default_rng(seed).integers(low, 21, shape).astype(np.float64)
    x = torch.tensor(numbers.tolist()).to(getattr(torch, dtype))
    return x, array(x)


def array(t):
    return np.array(t.to(torch.float64).tolist()).reshape(tuple(t.shape))


def turned(x, a, dim):
    """The same tensor, and its transpose where it has one."""
    yield x, a, dim
    if x.dim() == 2:
        yield x.t(), a.T, 1 - dim


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.parametrize("shape, dim", PLACES)
def test_sort(dtype, shape, dim):
    for x, a, d in turned(*values(shape, dtype), dim):
        got = torch.sort(x, d)
        assert (array(got.values) == np.sort(a, d)).all()
        assert (array(got.indices) == np.argsort(a, d, kind="stable")).all()
        assert got.values.dtype == x.dtype and got.indices.dtype == torch.int64
        down = torch.sort(x, d, True).indices
        last_first = np.flip(np.argsort(np.flip(a, d), d, kind="stable"), d)
        assert (array(down) == a.shape[d] - 1 - last_first).all()
        assert torch.argsort(x, d, stable=True).tolist() == got.indices.tolist()


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.parametrize("shape, dim", PLACES)
def test_selection(dtype, shape, dim):
    for x, a, d in turned(*values(shape, dtype), dim):
        n = a.shape[d]
        for k in {1, min(3, n), n // 2, n}:
            for largest in (True, False):
                got = torch.topk(x, k, d, largest)
                ordered = -np.sort(-a, d) if largest else np.sort(a, d)
                assert (array(got.values) == np.take(ordered, range(k), d)).all()
                at = array(got.indices).astype(int)
                assert (np.take_along_axis(a, at, d) == array(got.values)).all()
                lines = np.moveaxis(at, d, -1).reshape(-1, k)
                assert all(len(set(line)) == k for line in lines.tolist())
            got = torch.kthvalue(x, k, d, keepdim=True)
            assert (array(got.values) == np.take(np.sort(a, d), [k - 1], d)).all()
            at = array(got.indices).astype(int)
            assert (np.take_along_axis(a, at, d) == array(got.values)).all()
        got = torch.median(x, d)
        assert (array(got.values) == np.take(np.sort(a, d), (n - 1) // 2, d)).all()
        assert torch.median(x).item() == np.sort(a.ravel())[(a.size - 1) // 2]
        got = torch.mode(x, d, keepdim=True)
        at = array(got.indices).astype(int)
        assert (np.take_along_axis(a, at, d) == array(got.values)).all()
        for line, mode in zip(
            np.moveaxis(a, d, -1).reshape(-1, n), np.moveaxis(array(got.values), d, -1).ravel()
        ):
            seen, counts = np.unique(line, return_counts=True)
            assert mode == seen[counts.argmax()]


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.parametrize("shape, dim", PLACES + [((200000,), 0)])
def test_extremes(dtype, shape, dim):
    for x, a, d in turned(*values(shape, dtype), dim):
        for function, arg, both in (
            (np.max, np.argmax, torch.max),
            (np.min, np.argmin, torch.min),
        ):
            got = both(x, d)
            assert (array(got.values) == function(a, d)).all()
            assert (array(got.indices) == arg(a, d)).all()
            position = torch.argmax if both is torch.max else torch.argmin
            assert position(x, d).tolist() == got.indices.tolist()
            assert position(x).item() == arg(a)
            assert both(x).item() == function(a)
        low, high = torch.aminmax(x, dim=d)
        assert (array(low) == a.min(d)).all() and (array(high) == a.max(d)).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [5, 100, 5000, 150000])
def test_nan_wins(dtype, n):
    x = torch.arange(n).to(torch.float32) % 7
    for at in ([n // 2], [n - 1], [0, n - 1], [n // 3, n // 2]):
        y = x.clone()
        for i in at:
            y[i] = float("nan")
        y = y.to(getattr(torch, dtype))
        for arg, both in ((torch.argmax, torch.max), (torch.argmin, torch.min)):
            assert arg(y).item() == at[0]
            assert both(y, 0).indices.item() == at[0]
            assert both(y, 0).values.isnan().item() and both(y).isnan().item()
            wide = y.unsqueeze(1).expand(n, 3).contiguous()
            assert arg(wide, 0).tolist() == [at[0]] * 3
        assert torch.sort(y).indices[-len(at) :].tolist() == at
        assert torch.sort(y, descending=True).indices[: len(at)].tolist() == at
        assert sorted(torch.topk(y, len(at)).indices.tolist()) == at
        assert torch.median(y, 0).indices.item() == at[0] and torch.median(y).isnan().item()
        assert torch.nanmedian(y).item() == torch.median(x[y.isnan().logical_not()]).item()
        assert torch.cummax(y, 0).indices[-1].item() == at[-1]


def test_zeros_of_both_signs_are_equal():
    x = torch.tensor([0.0, -0.0, 0.0, -1.0])
    assert torch.sort(x).indices.tolist() == [3, 0, 1, 2]
    assert str(torch.sort(x).values.tolist()) == "[-1.0, 0.0, -0.0, 0.0]"


def test_descending_keeps_order_of_equals():
    x = torch.tensor([1, 3, 3, 2, 3] * 40)
    got = torch.sort(x, descending=True).indices.tolist()
    threes = [i for i in range(200) if i % 5 in (1, 2, 4)]
    assert got[: len(threes)] == threes


def test_wide_integers():
    x = torch.tensor([2**62, -(2**62), 0, 2**63 - 1, -(2**63)] * 50)
    order = torch.sort(x)
    assert order.values.tolist() == sorted(x.tolist())
    assert torch.topk(x, 2).values.tolist() == [2**63 - 1] * 2


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: torch.zeros(0).max(), RuntimeError, "numel"),
        (lambda: torch.zeros(0, 3).max(0), IndexError, "non-zero size"),
        (lambda: torch.zeros(0).argmax(), IndexError, "numel"),
        (lambda: torch.zeros(3, 0).argmin(1), IndexError, "non-zero size"),
        (lambda: torch.zeros(3).max(1), IndexError, "Dimension out of range"),
        (lambda: torch.zeros(3).topk(4), RuntimeError, "out of range"),
        (lambda: torch.zeros(3).kthvalue(4), RuntimeError, "out of range"),
        (lambda: torch.zeros(3).kthvalue(0), RuntimeError, "out of range"),
        (lambda: torch.zeros(0).median(0), IndexError, "non-zero size"),
        (lambda: torch.zeros(3, dtype=torch.complex64).sort(), RuntimeError, "complex"),
        (lambda: torch.zeros(3, dtype=torch.complex64).max(), RuntimeError, "complex"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_empty():
    assert torch.sort(torch.zeros(0, 3)).values.shape == (0, 3)
    assert torch.zeros(0, 3).max(1).values.shape == (0,)
    assert torch.topk(torch.zeros(3), 0).indices.shape == (0,)
    assert torch.zeros(0).median().isnan().item()


def test_gradients_of_ties():
    """By dimension the index has all of it, without one the equal elements share."""
    for function in (torch.max, torch.min):
        x = torch.tensor([2.0, 2.0, 2.0], requires_grad=True)
        function(x, 0).values.backward()
        assert x.grad.tolist() == [1.0, 0.0, 0.0]
        x.grad = None
        function(x).backward()
        assert all(abs(g - 1 / 3) < 1e-6 for g in x.grad.tolist())


PROGRAM = """
import tessera as torch
torch.manual_seed(0)
x, n = torch.randn(300, 500), torch.randn(400000)
rows = (x * 3).round()
out = [torch.sort(n).indices, torch.sort(rows, 0).indices, torch.argmax(n), torch.max(rows, 1)[1],
       torch.min(rows, 0)[1], torch.cumsum(n, 0), torch.cumsum(x, 1), torch.cumsum(x, 0),
       torch.topk(rows, 20)[1], torch.median(rows, 1)[1], torch.cumsum(n.to(torch.bfloat16), 0)]
import hashlib
print([hashlib.sha1(repr(t.tolist()).encode()).hexdigest() for t in out])
"""


def test_same_bits_on_any_number_of_threads():
    import os

    texts = set()
    for threads in ("1", "2", "5"):
        environment = {**os.environ, "TESSERA_NUM_THREADS": threads}
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr
        texts.add(run.stdout)
    assert len(texts) == 1
