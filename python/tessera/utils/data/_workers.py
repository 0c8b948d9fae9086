"""Loading by worker processes.

Each worker has a pipe for its tasks and one for its results: a worker that dies can leave no lock
behind, and is noticed at once. The parent waits for pipes and for deaths together.
"""

import multiprocessing
import os
import queue
import signal
import threading
import time
import weakref
from multiprocessing import connection

from ._utils.pin_memory import pin_memory
from ._utils.transport import receive
from ._utils.worker import DATA, ENDED, RAISED, worker_loop
from .dataloader import _BaseDataLoaderIter, _DatasetKind

# Ends of pipes in this process: children that are forked close their copies, or a pipe would look
# open as long as any of them lives.
_ends_here = weakref.WeakSet()
_STOP_S = 5.0  # how long a worker may take to end by itself
_FAILED_STOP_S = 0.2  # the same when something went wrong


def _death(process):
    """What is said of a worker that ended when it should not."""
    process.join(1)
    code = process.exitcode
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        text = f"DataLoader worker (pid {process.pid}) is killed by signal: "
        text += f"{signal.strsignal(-code) or name} ({name}). "
        if -code == signal.SIGKILL:
            text += "It may have been killed for using too much memory. "
        return text
    return (
        f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly with exit code {code}. "
        "Rerunning with num_workers=0 may give better error trace."
    )


class _Worker:
    """A process, the pipes to it, and what it is still to send."""

    def __init__(self, context):
        self.tasks_in, self.tasks = context.Pipe(duplex=False)
        # A socket: descriptors of shared memory go through it too.
        self.results, self.results_out = context.Pipe(duplex=True)
        _ends_here.update((self.tasks, self.results))
        self.process = None
        self.active = True
        self.outstanding = 0

    def start(self, context, arguments, to_close):
        self.process = context.Process(
            target=worker_loop,
            args=(self.tasks_in, self.results_out, *arguments, to_close),
            daemon=True,
        )
        self.process.start()

    def close_far_ends(self):
        self.tasks_in.close()
        self.results_out.close()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """One pass, or several with persistent workers."""

    def __init__(self, loader):
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        self._shutdown = False
        self._process = os.getpid()
        self._workers = []
        self._pin_thread = None
        context = loader.multiprocessing_context or multiprocessing.get_context()
        iterable = self._dataset_kind == _DatasetKind.Iterable
        try:
            for _ in range(self._num_workers):
                self._workers.append(_Worker(context))
            self._start(context, loader, iterable)
        except BaseException:
            self._shutdown_workers(_FAILED_STOP_S)
            raise
        if self._pin_memory:
            self._pin_thread = _PinThread(self._workers)
            self._pin_thread.start()
        self._begin()

    def _start(self, context, loader, iterable):
        forked = context.get_start_method() == "fork"
        for i, worker in enumerate(self._workers):
            others = [
                end for w in self._workers if w is not worker for end in (w.tasks_in, w.results_out)
            ]
            to_close = (*_ends_here, *others) if forked else ()
            arguments = (
                self._dataset,
                "iterable" if iterable else "map",
                self._auto_collation,
                self._collate_fn,
                self._drop_last,
                self._base_seed,
                loader.worker_init_fn,
                i,
                self._num_workers,
            )
            worker.start(context, arguments, [e for e in to_close if not e.closed])
        for worker in self._workers:
            worker.close_far_ends()

    def _begin(self):
        self._sent = 0  # number of the next task
        self._next = 0  # number of the next batch to give out
        self._owner = {}  # number of a task -> its worker
        self._arrived = {}  # number -> message
        self._turn = 0
        for worker in self._workers:
            worker.active = True
            worker.outstanding = 0
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _reset(self, loader):
        # What the last pass left on its way is of no use any more.
        while any(w.outstanding for w in self._workers):
            self._receive(None)
        super()._reset(loader)
        for worker in self._workers:
            self._send(worker, ("resume", None))
        self._begin()

    # ---- tasks -------------------------------------------------------------------------------

    def _send(self, worker, message):
        try:
            worker.tasks.send(message)
        except OSError:  # it is gone
            self._fail(_death(worker.process))

    def _choose_worker(self):
        """Workers in turn; out of order, one that has little to do."""
        for _ in range(self._num_workers):
            worker = self._workers[self._turn % self._num_workers]
            self._turn += 1
            if worker.active and (self._in_order or worker.outstanding < self._prefetch_factor):
                return worker
        return None

    def _try_put_index(self):
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker = self._choose_worker()
        if worker is None:
            return
        self._owner[self._sent] = worker
        worker.outstanding += 1
        self._send(worker, (self._sent, index))
        self._sent += 1

    # ---- results -----------------------------------------------------------------------------

    def _next_data(self):
        if self._shutdown:
            raise StopIteration
        while True:
            number = self._ready_number()
            if number is None:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if number not in self._arrived:
                self._receive(self._timeout or None)
                continue
            kind, data = self._arrived.pop(number)
            self._owner.pop(number)
            if kind == ENDED:
                continue
            self._try_put_index()
            if kind == RAISED:
                data.reraise()
            return data

    def _ready_number(self):
        """The batch to give out next: one that has arrived, or is to be waited for."""
        if not self._in_order:
            return next(iter(self._arrived)) if self._arrived else min(self._owner, default=None)
        while self._next < self._sent:
            if self._next in self._owner:
                return self._next
            self._next += 1
        return None

    def _store(self, worker, message):
        kind, number, data = message
        worker.outstanding -= 1
        if kind == ENDED and worker.active:
            worker.active = False
            self._try_put_index()
        self._arrived[number] = (kind, data)

    def _receive(self, timeout):
        """Waits for at least one message."""
        if self._pin_thread is not None:
            worker, message = self._pin_thread.get(timeout, self._fail)
            if isinstance(message, BaseException):
                self._shutdown_workers(_FAILED_STOP_S)
                raise message
            self._store(worker, message)
            return
        got = _wait(self._workers, timeout)
        if not got:
            self._fail(f"DataLoader timed out after {self._timeout} seconds")
        for worker, message in got:
            if isinstance(message, BaseException):
                self._shutdown_workers(_FAILED_STOP_S)
                raise message
            self._store(worker, message)

    def _fail(self, text):
        self._shutdown_workers(_FAILED_STOP_S)
        raise RuntimeError(text)

    # ---- the end -----------------------------------------------------------------------------

    def _shutdown_workers(self, patience=_STOP_S):
        """Ends all workers and waits for them: nothing is left behind."""
        if self._shutdown or self._process != os.getpid():  # a copy in a forked process
            return
        self._shutdown = True
        if self._pin_thread is not None:
            self._pin_thread.stop()
        for worker in self._workers:
            try:
                worker.tasks.send(None)
            except (OSError, ValueError):
                pass
            # Both ends go: who still writes sees that nobody reads.
            worker.tasks.close()
            worker.results.close()
            worker.close_far_ends()
        until = time.monotonic() + patience
        for worker in self._workers:
            process = worker.process
            if process is None or process.pid is None:
                continue
            process.join(max(0.0, until - time.monotonic()))
            for end in (process.terminate, process.kill):
                if process.is_alive():
                    end()
                    process.join(1)

    def __del__(self):
        try:
            self._shutdown_workers()
        except Exception:  # the interpreter is shutting down
            pass


def _wait(workers, timeout):
    """Messages of workers, or a RuntimeError in the place of one: [(worker, message)]."""
    by_pipe = {w.results: w for w in workers}
    by_death = {w.process.sentinel: w for w in workers}
    until = None if timeout is None else time.monotonic() + timeout
    while True:
        left = None if until is None else max(0.0, until - time.monotonic())
        ready = connection.wait([*by_pipe, *by_death], left)
        got = []
        for pipe in ready:
            if pipe in by_pipe:
                worker = by_pipe[pipe]
                try:
                    got.append((worker, receive(pipe)))
                except (EOFError, OSError):
                    return [(worker, RuntimeError(_death(worker.process)))]
        if got or not ready:
            return got
        # Only deaths: what they had sent is read.
        worker = by_death[ready[0]]
        return [(worker, RuntimeError(_death(worker.process)))]


class _PinThread(threading.Thread):
    """Reads results and pins their memory while the program does something else."""

    def __init__(self, workers):
        super().__init__(daemon=True)
        self._workers = workers
        self._done = threading.Event()
        self._queue = queue.Queue()

    def run(self):
        while not self._done.is_set():
            try:
                got = _wait(self._workers, 0.2)
            except (OSError, ValueError):
                return  # pipes are closed
            for worker, message in got:
                if not isinstance(message, BaseException) and message[0] == DATA:
                    try:
                        data = pin_memory(message[2])
                        message = (DATA, message[1], data)
                    except Exception as error:
                        message = error
                self._queue.put((worker, message))
                if isinstance(message, BaseException):
                    return

    def get(self, timeout, fail):
        try:
            return self._queue.get(timeout=timeout)
        except queue.Empty:
            fail(f"DataLoader timed out after {timeout} seconds")

    def stop(self):
        self._done.set()
        if threading.current_thread() is not self:
            self.join(5)
