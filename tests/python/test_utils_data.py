"""Datasets, samplers and collation; loading in this process."""

import json
from collections import OrderedDict, namedtuple
from pathlib import Path

import pytest
from orders import CASES, run

import tessera as torch
from tessera.utils import data
from tessera.utils.data import DataLoader, TensorDataset

RECORDED = json.loads((Path(__file__).parent / "data" / "orders.json").read_text())
Pair = namedtuple("Pair", "a b")


def numbers(n, width=1):
    return torch.tensor([float(i) for i in range(n * width)]).reshape(n, width)


@pytest.mark.parametrize("case", CASES)
def test_the_same_seed_gives_the_same_order(case):
    got = run(torch, case)
    assert got == RECORDED[case]


class Counting(data.Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i >= self.n:
            raise IndexError
        return i


class Stream(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


def test_datasets():
    x, y = numbers(4, 2), torch.tensor([3, 2, 1, 0])
    rows = TensorDataset(x, y)
    assert len(rows) == 4 and rows[1][0].tolist() == [2, 3] and rows[1][1].item() == 2
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(x, y[:2])
    both = Counting(3) + Counting(2)
    assert isinstance(both, data.ConcatDataset) and len(both) == 5
    assert [both[i] for i in range(5)] == [0, 1, 2, 0, 1] and both[-1] == 1
    with pytest.raises(ValueError, match="should not exceed dataset length"):
        both[-6]
    with pytest.raises(AssertionError, match="empty iterable"):
        data.ConcatDataset([])
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        data.ConcatDataset([Stream(1)])
    chained = Stream(2) + Stream(3)
    assert isinstance(chained, data.ChainDataset) and list(chained) == [0, 1, 0, 1, 2]
    part = data.Subset(Counting(5), [4, 1])
    assert len(part) == 2 and part[0] == 4 and part.__getitems__([1, 0]) == [1, 4]
    stacked = data.StackDataset(Counting(2), part)
    assert stacked[1] == (1, 1) and stacked.__getitems__([1, 0]) == [(1, 1), (0, 4)]
    assert data.StackDataset(a=Counting(2), b=part)[0] == {"a": 0, "b": 4}
    with pytest.raises(ValueError, match="Size mismatch"):
        data.StackDataset(Counting(2), Counting(3))
    with pytest.raises(ValueError, match="At least one"):
        data.StackDataset()
    with pytest.raises(NotImplementedError):
        data.Dataset()[0]


def test_samplers_refuse():
    for act, error, words in (
        (lambda: data.RandomSampler([]), ValueError, "num_samples should be a positive"),
        (lambda: data.RandomSampler([1], 1), TypeError, "replacement should be a boolean"),
        (lambda: data.BatchSampler([1], 0, False), ValueError, "batch_size should be a positive"),
        (lambda: data.BatchSampler([1], 1, 1), ValueError, "drop_last should be a boolean"),
        (lambda: data.WeightedRandomSampler([1], 0), ValueError, "num_samples should be"),
        (lambda: data.WeightedRandomSampler([[1]], 1), ValueError, "should be a 1d sequence"),
        (lambda: data.random_split(range(3), [1, 1]), ValueError, "Sum of input lengths"),
        (lambda: data.random_split(range(3), [-0.5, 1.5]), ValueError, "not between 0 and 1"),
        (lambda: data.DistributedSampler([1], 2, 2), ValueError, "Invalid rank 2"),
    ):
        with pytest.raises(error, match=words):
            act()


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(num_workers=-1), "num_workers option should be non-negative"),
        (dict(timeout=-1), "timeout option should be non-negative"),
        (dict(prefetch_factor=2), "prefetch_factor option could only be specified"),
        (dict(num_workers=1, prefetch_factor=-1), "prefetch_factor option should be non-neg"),
        (dict(persistent_workers=True), "persistent_workers option needs num_workers > 0"),
        (dict(sampler=[1], shuffle=True), "sampler option is mutually exclusive with shuffle"),
        (dict(batch_sampler=[[1]], batch_size=2), "batch_sampler option is mutually exclusive"),
        (dict(batch_size=None, drop_last=True), "batch_size=None option disables auto-batching"),
        (dict(batch_size=0), "batch_size should be a positive"),
        (dict(multiprocessing_context="fork"), "can only be used with multi-process loading"),
        (dict(num_workers=1, multiprocessing_context="x"), "should specify a valid start method"),
    ],
    ids=str,
)
def test_loaders_refuse(options, words):
    with pytest.raises(ValueError, match=words):
        DataLoader(Counting(3), **options)


def test_more_refusals():
    for options in (dict(shuffle=True), dict(sampler=[1]), dict(batch_sampler=[[1]])):
        with pytest.raises(ValueError, match="DataLoader with IterableDataset: expected"):
            DataLoader(Stream(2), **options)
    loader = DataLoader(Counting(3))
    for name in ("batch_size", "sampler", "dataset", "drop_last", "batch_sampler"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set"):
            setattr(loader, name, 1)
    with pytest.warns(UserWarning, match="will create 1000 worker processes"):
        DataLoader(Counting(3), num_workers=1000)


def test_lengths():
    assert len(DataLoader(Counting(7), batch_size=2)) == 4
    assert len(DataLoader(Counting(7), batch_size=2, drop_last=True)) == 3
    assert len(DataLoader(Counting(7), batch_size=None)) == 7
    assert len(DataLoader(Counting(7), batch_sampler=[[1], [2]])) == 2
    with pytest.raises(TypeError):
        len(DataLoader(Stream(3)))


def test_iterable():
    assert [b.tolist() for b in DataLoader(Stream(5), batch_size=2)] == [[0, 1], [2, 3], [4]]
    loader = DataLoader(Stream(5), batch_size=2, drop_last=True)
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3]]
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]

    class Lying(Stream):
        def __len__(self):
            return 1

    loader = DataLoader(Lying(3), batch_size=None)
    assert len(loader) == 1
    with pytest.warns(UserWarning, match="was reported to be 1"):
        list(loader)


def test_collate():
    collate = data.default_collate
    assert collate([1, 2]).dtype == torch.int64 and collate([1.5, 2]).dtype == torch.float64
    assert collate(["a", "b"]) == ["a", "b"] and collate([True, False]).dtype == torch.bool
    assert collate([torch.ones(2), torch.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    out = collate([{"a": 1, "b": (2, "x")}, {"a": 3, "b": (4, "y")}])
    assert out["a"].tolist() == [1, 3] and type(out["b"]) is list
    assert out["b"][0].tolist() == [2, 4] and list(out["b"][1]) == ["x", "y"]
    named = collate([Pair(1, 2), Pair(3, 4)])
    assert type(named) is Pair and named.b.tolist() == [2, 4]
    assert type(collate([OrderedDict(a=1), OrderedDict(a=2)])) is OrderedDict
    with pytest.raises(RuntimeError, match="should be of equal size"):
        collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="batch must contain tensors.*object"):
        collate([object()])


def test_collate_numpy():
    np = pytest.importorskip("numpy")
    collate = data.default_collate
    assert collate([np.ones(2), np.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert collate([np.float32(1.5), np.float32(2)]).tolist() == [1.5, 2]
    with pytest.raises(TypeError, match="default_collate"):
        collate([np.array(["a"])])
    convert = data.default_convert
    assert convert({"a": [np.ones(1), "x", 3]})["a"][0].tolist() == [1]
    assert convert((1, "x")) == [1, "x"] and convert("x") == "x"
    assert type(convert(Pair(np.ones(1), 1))) is Pair


def test_own_collation():
    assert list(DataLoader(Counting(3), 2, collate_fn=list)) == [[0, 1], [2]]
    assert list(DataLoader(Counting(3), None, collate_fn=lambda x: -x)) == [0, -1, -2]


def test_many_at_once():
    class Many(Counting):
        def __getitems__(self, indices):
            return [100 + i for i in indices]

    assert [b.tolist() for b in DataLoader(Many(3), 2)] == [[100, 101], [102]]


def plain(batch):
    return data.default_collate(batch)


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        dict(batch_size=4),
        dict(batch_size=4, drop_last=True),
        dict(batch_size=4, shuffle=True),
        dict(batch_size=100, shuffle=True),
        dict(batch_sampler=[[0, -1], [2], [1, 1, 1]]),
    ],
    ids=str,
)
def test_rows_of_tensors_at_once(options, part, device):
    """The short way gives what the long one does: values, kinds, draws."""
    rows = TensorDataset(numbers(10, 3).to(device), torch.tensor(list(range(10))).to(device))
    if part:
        rows = data.Subset(rows, [7, 3, 5, 0, 2, 9])
    got, drawn = [], []
    for collate in (None, plain):
        torch.manual_seed(1)
        got.append(list(DataLoader(rows, collate_fn=collate, **options)))
        drawn.append(torch.rand(1).item())
    assert drawn[0] == drawn[1] and len(got[0]) == len(got[1])
    for a, b in zip(*got):
        assert type(a) is type(b) is list and len(a) == len(b) == 2
        for s, t in zip(a, b):
            assert s.tolist() == t.tolist() and s.dtype == t.dtype and s.device == t.device
            assert s.is_contiguous() and not s._is_same_storage(rows[0][0])
    # A batch is nobody else's memory.
    first = got[0][0][0]
    first.fill_(-1)
    assert rows[0][0].tolist() != [-1, -1, -1]


def test_rows_out_of_range():
    with pytest.raises(IndexError, match="out of bounds"):
        list(DataLoader(TensorDataset(numbers(3)), batch_sampler=[[3]]))


def test_dropped_first_draw():
    """The seed for workers is drawn when a pass begins, the order with its first batch."""
    loader = DataLoader(TensorDataset(numbers(5)), shuffle=True)
    torch.manual_seed(0)
    batches = iter(loader)
    between = torch.rand(1).item()
    torch.manual_seed(0)
    torch.empty((), dtype=torch.int64).random_()
    assert torch.rand(1).item() == between
    assert len(list(batches)) == 5


def test_pinning_without_a_device(device):
    if device != "cpu" or torch.cuda.is_available():
        pytest.skip("a cuda device is here")
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert len(list(DataLoader(TensorDataset(numbers(2)), pin_memory=True))) == 2
