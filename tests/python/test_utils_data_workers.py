"""Loading by worker processes: results, seeds, errors, deaths."""

import gc
import os
import signal
import time

import pytest

import tessera as torch
from tessera.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


class Counting(Dataset):
    def __init__(self, n=10, act=None):
        self.n, self.act = n, act

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == 7 and self.act:
            self.act()
        return i


class Share(IterableDataset):
    """Each worker its part: worker k has k + 2 samples."""

    def __iter__(self):
        info = get_worker_info()
        return iter([(info.id, i) for i in range(info.id + 2)])


def lists(loader):
    return [b.tolist() for b in loader]


def gone(pids):
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def pids_of(iterator):
    return [worker.process.pid for worker in iterator._workers]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_order_is_kept(workers):
    loader = DataLoader(Counting(), 3, num_workers=workers)
    assert lists(loader) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]] == lists(loader)


def test_out_of_order():
    loader = DataLoader(Counting(), 3, num_workers=2, in_order=False)
    assert sorted(lists(loader)) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_iterable_datasets():
    loader = DataLoader(Share(), batch_size=2, num_workers=2)
    got = [(ids.tolist(), values.tolist()) for ids, values in loader]
    assert got == [([0, 0], [0, 1]), ([1, 1], [0, 1]), ([1], [2])]


def info_of_worker(i):
    info = get_worker_info()
    assert info.id == i and info.num_workers == 2 and info.dataset.n == 10
    assert info.seed == torch.initial_seed()
    info.dataset.n = 100 + i
    with pytest.raises(RuntimeError, match="Cannot assign attributes to WorkerInfo"):
        info.id = 5


class Told(Counting):
    def __getitem__(self, i):
        return self.n


def test_worker_init_fn_and_info():
    assert get_worker_info() is None
    loader = DataLoader(Told(), 5, num_workers=2, worker_init_fn=info_of_worker)
    assert lists(loader) == [[100] * 5, [101] * 5]


def raise_value_error():
    raise ValueError("wrong in the dataset")


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def raise_odd():
    raise Odd(1, 2)


def test_errors_in_workers():
    loader = DataLoader(Counting(act=raise_value_error), 2, num_workers=2)
    with pytest.raises(ValueError) as caught:
        list(loader)
    text = str(caught.value)
    assert text.startswith("Caught ValueError in DataLoader worker process 1.\nOriginal Traceback")
    assert "in raise_value_error" in text and text.rstrip().endswith("wrong in the dataset")
    with pytest.raises(RuntimeError, match="Caught Odd in DataLoader worker process"):
        list(DataLoader(Counting(act=raise_odd), 2, num_workers=2))
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0"):
        list(DataLoader(Counting(), num_workers=1, worker_init_fn=lambda i: raise_value_error()))


def test_going_on_after_an_error():
    batches = iter(DataLoader(Counting(act=raise_value_error), 2, num_workers=2))
    got = []
    while True:
        try:
            got.append(next(batches).tolist())
        except ValueError:
            got.append("error")
        except StopIteration:
            break
    assert got == [[0, 1], [2, 3], [4, 5], "error", [8, 9]]


@pytest.mark.parametrize(
    "act, words",
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), r"\(pid {}\) is killed by signal: Killed"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), r"\(pid {}\) is killed by signal: Term"),
        (lambda: os._exit(3), r"\(pid\(s\) {}\) exited unexpectedly with exit code 3"),
    ],
)
def test_a_worker_that_dies(act, words):
    batches = iter(DataLoader(Counting(act=act), 2, num_workers=2))
    pids = pids_of(batches)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=words.format(pids[1])):
        list(batches)
    assert time.monotonic() - start < 5
    assert gone(pids)
    with pytest.raises(StopIteration):
        next(batches)


def test_a_worker_killed_from_outside():
    batches = iter(DataLoader(Counting(1000), 2, num_workers=2))
    next(batches)
    pids = pids_of(batches)
    os.kill(pids[0], signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=f"pid {pids[0]}"):
        list(batches)
    assert time.monotonic() - start < 5 and gone(pids)


def test_timeout():
    batches = iter(DataLoader(Counting(act=lambda: time.sleep(20)), 2, num_workers=2, timeout=0.5))
    pids = pids_of(batches)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.5 seconds"):
        list(batches)
    assert time.monotonic() - start < 5 and gone(pids)


class Large(Counting):
    def __getitem__(self, i):
        return torch.full((100_000,), float(i))


def test_an_iterator_that_is_let_go():
    """Workers that are still sending more than a pipe holds end too."""
    batches = iter(DataLoader(Large(100), 2, num_workers=2, collate_fn=lambda b: b[0]))
    assert next(batches)[0].item() == 0
    pids = pids_of(batches)
    del batches
    assert gone(pids)


def test_two_loaders_at_once():
    outer = iter(DataLoader(Large(6), None, num_workers=2))
    next(outer)
    inner = DataLoader(Counting(4), 2, num_workers=1)
    assert lists(inner) == [[0, 1], [2, 3]]
    pids = pids_of(outer)
    kept = iter(inner)
    start = time.monotonic()
    del outer
    assert gone(pids) and time.monotonic() - start < 4
    assert [b.tolist() for b in kept] == [[0, 1], [2, 3]]


class Process(Counting):
    def __getitem__(self, i):
        return os.getpid()


def test_persistent_workers():
    loader = DataLoader(Process(4), 2, num_workers=2, persistent_workers=True)
    first = lists(loader)
    assert lists(loader) == first
    half = iter(loader)
    next(half)
    assert lists(loader) == first
    pids = pids_of(loader._iterator)
    del loader, half
    assert gone(pids)
    fresh = DataLoader(Process(4), 2, num_workers=2)
    assert lists(fresh) != lists(fresh)


def test_spawned_workers():
    loader = DataLoader(Counting(4), 2, num_workers=1, multiprocessing_context="spawn")
    assert lists(loader) == [[0, 1], [2, 3]]


def test_prefetching():
    """No more batches are made ahead than asked for."""
    import multiprocessing

    made = multiprocessing.Value("i", 0)

    class Counted(Counting):
        def __getitem__(self, i):
            with made.get_lock():
                made.value += 1
            return i

    batches = iter(DataLoader(Counted(100), 1, num_workers=1, prefetch_factor=3))
    next(batches)
    time.sleep(0.3)
    assert made.value <= 4
    del batches


class Mixed(Counting):
    """Tensors above and below the size from which memory is shared."""

    def __getitem__(self, i):
        large = torch.full((300, 100), float(i))
        return {
            "large": large,
            "turned": large[:, :80].t(),
            "small": torch.tensor([i]),
            "narrow": large.to(torch.bfloat16),
            "whole": torch.full((40_000,), i),
            "flags": torch.full((100_000,), i % 2).to(torch.bool),
            "same": [large, large],
            "empty": torch.empty(0, 5),
        }


def open_files():
    """How many, without those of what only the collector still knows."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_tensors_of_all_kinds():
    before = open_files()
    kept = list(DataLoader(Mixed(6), None, num_workers=2))
    assert open_files() <= before
    for i, got in enumerate(kept):
        for key, value in Mixed(6)[i].items():
            pairs = zip(got[key], value) if isinstance(value, list) else [(got[key], value)]
            for a, b in pairs:
                assert a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()
    kept[0]["large"].fill_(-1)
    assert kept[1]["large"][0, 0].item() == 1 and kept[0]["large"][0, 0].item() == -1


class Many(Counting):
    def __getitem__(self, i):
        return [torch.full((20_000,), float(k)) for k in range(260)]


def test_more_tensors_than_descriptors_go_at_once():
    (got,) = DataLoader(Many(1), None, num_workers=1)
    assert [t[-1].item() for t in got] == [float(k) for k in range(260)]


def sent(value):
    """As a worker sends it and its parent gets it, and how many stretches of memory went."""
    import multiprocessing
    import threading

    from tessera.utils.data._utils import transport

    message, (here, there) = transport.Message(value), multiprocessing.Pipe()
    count = len(message.descriptors)
    sender = threading.Thread(target=message.send, args=(here,))
    sender.start()
    try:
        return transport.receive(there), count
    finally:
        sender.join()


def test_large_tensors_that_share_memory_share_it_on_the_other_side():
    x = torch.arange(100_000.0)
    (a, b), count = sent([x, x])
    assert a is b and a.equal(x) and count == 1
    (a, b), count = sent([x[:50_000], x[20_000:80_000]])
    a[30_000] = -5
    assert b[10_000].item() == -5 and b.shape == (60_000,) and count == 1
    # What does not overlap goes alone, without what lies between.
    (a, b), count = sent([x[:30_000], x[60_000:]])
    assert a.equal(x[:30_000]) and b.equal(x[60_000:]) and count == 2


def test_large_tensors_of_every_layout_and_dtype_arrive():
    image = torch.arange(240_000.0).view(2, 3, 200, 200).to(memory_format=torch.channels_last)
    x = torch.arange(100_000.0)
    given = [image, x[::2], x.expand(3, 100_000), x.to(torch.bfloat16), x > 7, x * 1j]
    got, _ = sent(given)
    assert got[0].stride() == image.stride()
    for a, b in zip(got, given):
        assert a.dtype == b.dtype and a.equal(b)
