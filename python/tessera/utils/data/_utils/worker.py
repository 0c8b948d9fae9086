"""What a worker process does: takes indices from its pipe, sends batches back."""

import pickle
import queue
import random
import sys
import threading
from multiprocessing import connection, parent_process

import tessera as torch

from .info import WorkerInfo, get_worker_info, set_worker_info
from .transport import Message

__all__ = ["WorkerInfo", "get_worker_info", "worker_loop"]

# Kinds of messages from a worker: (kind, number of the batch, data).
DATA, ENDED, RAISED = range(3)


def _generate_state(base_seed, worker_id):
    """Four numbers of 32 bits for NumPy, as PyTorch mixes them from both."""
    mask, shift = 0xFFFFFFFF, 16

    def scrambler(constant, multiplier):
        state = constant

        def scramble(value):
            nonlocal state
            value = (value ^ state) & mask
            state = (state * multiplier) & mask
            value = (value * state) & mask
            return (value ^ (value >> shift)) & mask

        return scramble

    scramble = scrambler(0x43B0D7E5, 0x931E8875)
    pool = [scramble(w) for w in (worker_id, base_seed & mask, base_seed >> 32, 0)]
    for source in range(4):
        for target in range(4):
            if source != target:
                mixed = (pool[target] * 0xCA01F9DD) & mask
                mixed = (mixed - ((scramble(pool[source]) * 0x4973F715) & mask)) & mask
                pool[target] = (mixed ^ (mixed >> shift)) & mask
    finish = scrambler(0x8B51F9DD, 0x58F38DED)
    return [finish(value) for value in pool]


def _seed(base_seed, worker_id):
    seed = base_seed + worker_id
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(_generate_state(base_seed, worker_id))
    return seed


class _Sender(threading.Thread):
    """Writes to the pipe, so that the next batch is made while the last one is on its way."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.queue = queue.SimpleQueue()
        self.pipe = pipe

    def run(self):
        while (message := self.queue.get()) is not None:
            try:
                message.send(self.pipe)
            except OSError:  # nobody reads any more
                return

    def send(self, *message):
        self.queue.put(Message(message))

    def finish(self):
        self.queue.put(None)
        self.join()


class RaisedInWorker:
    """An exception on its way to the parent, with the worker's traceback as text."""

    def __init__(self, error, where):
        import traceback

        self.kind = type(error)
        self.where = where
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        try:
            pickle.loads(pickle.dumps(self.kind))
        except Exception:
            self.kind = RuntimeError

    def reraise(self):
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            # KeyError prints the repr of its argument: a text that is its own repr keeps lines.
            message = _Lines(message)
        try:
            error = self.kind(message)
        except Exception:
            # A class that takes other arguments.
            raise RuntimeError(message) from None
        raise error


class _Lines(str):
    def __repr__(self):
        return str(self)


def _fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
    from .fetch import _IterableDatasetFetcher, _MapDatasetFetcher

    cls = _IterableDatasetFetcher if kind == "iterable" else _MapDatasetFetcher
    return cls(dataset, auto_collation, collate_fn, drop_last)


def worker_loop(
    tasks,
    results,
    dataset,
    kind,
    auto_collation,
    collate_fn,
    drop_last,
    base_seed,
    init_fn,
    worker_id,
    num_workers,
    to_close=(),
):
    """Runs until it is told to stop, or the parent is gone.

    A task is (number, indices); ("resume", seed) begins another pass over the dataset; None ends.
    """
    for pipe in to_close:  # ends that belong to the parent or to other workers
        pipe.close()
    # An interrupt reaches the whole group of processes: the parent decides.
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    set_threads = getattr(torch, "set_num_threads", None)
    if set_threads is not None:
        set_threads(1)
    sender = _Sender(results)
    sender.start()
    where = f"in DataLoader worker process {worker_id}"
    failed, fetcher = None, None
    try:
        seed = _seed(base_seed, worker_id)
        set_worker_info(
            WorkerInfo(id=worker_id, num_workers=num_workers, seed=seed, dataset=dataset)
        )
        if init_fn is not None:
            init_fn(worker_id)
        fetcher = _fetcher(kind, dataset, auto_collation, collate_fn, drop_last)
    except Exception as error:
        failed = RaisedInWorker(error, where)
    parent = parent_process()
    watched = [tasks] + ([parent.sentinel] if parent is not None else [])
    ended = False
    while True:
        if tasks not in connection.wait(watched):
            return  # the parent is gone
        try:
            task = tasks.recv()
        except (EOFError, OSError):
            return
        if task is None:
            break
        number, index = task
        if number == "resume":
            ended = False
            try:
                if index is not None:
                    _seed(index, worker_id)
                fetcher = _fetcher(kind, dataset, auto_collation, collate_fn, drop_last)
            except Exception as error:
                failed = RaisedInWorker(error, where)
            continue
        if failed is not None:
            sender.send(RAISED, number, failed)
            continue
        if ended:
            sender.send(ENDED, number, None)
            continue
        try:
            data = fetcher.fetch(index)
            message = Message((DATA, number, data))
        except Exception as error:
            ended = kind == "iterable" and isinstance(error, StopIteration)
            if ended:
                sender.send(ENDED, number, None)
            else:
                sender.send(RAISED, number, RaisedInWorker(error, where))
            continue
        sender.queue.put(message)
        del data, message
    sender.finish()
