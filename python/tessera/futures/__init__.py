"""Results that come later."""

import threading

from .._missing import module_getattr

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that somebody sets, once; whoever waits for it gets it."""

    def __init__(self, *, devices=None):
        self._condition = threading.Condition()
        self._state = None  # ("value", v) or ("error", e)
        self._callbacks = []

    def done(self):
        return self._state is not None

    def _settle(self, kind, what):
        with self._condition:
            if self._state is not None:
                raise RuntimeError("Future can only be marked completed once")
            self._state = kind, what
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for call in callbacks:
            call(self)

    def set_result(self, result):
        self._settle("value", result)

    def set_exception(self, result):
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._settle("error", result)

    def wait(self):
        with self._condition:
            while self._state is None:
                self._condition.wait(0.2)  # so that Ctrl-C is heard
        return self.value()

    def value(self):
        if self._state is None:
            raise RuntimeError("the future has no value yet: wait() for it")
        kind, what = self._state
        if kind == "error":
            raise what
        return what

    def add_done_callback(self, callback):
        """callback(future) once it is done; now, if it is."""
        with self._condition:
            if self._state is None:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback):
        """A future of callback(this one)."""
        later = Future()

        def go_on(future):
            try:
                result = callback(future)
            except Exception as error:
                later.set_exception(error)
            else:
                later.set_result(result)

        self.add_done_callback(go_on)
        return later


class WorkFuture(Future):
    """Of a collective: done when somebody waits for it, on the thread that waits."""

    def __init__(self, work):
        super().__init__()
        self._work = work

    def done(self):
        return self._state is not None or self._work.is_completed()

    def wait(self):
        if self._state is None:
            try:
                self._work.wait()
            except Exception as error:
                self.set_exception(error)
            else:
                self.set_result(self._work.result())
        return self.value()

    def value(self):
        return self.wait() if self._state is None and self.done() else super().value()

    def then(self, callback):
        return _Later(self, callback)


class _Later(Future):
    """What comes after a collective, computed by whoever waits."""

    def __init__(self, first, callback):
        super().__init__()
        self._first, self._callback = first, callback

    def done(self):
        return self._state is not None or self._first.done()

    def wait(self):
        if self._state is None:
            try:
                self._first.wait()
                self.set_result(self._callback(self._first))
            except Exception as error:
                if self._state is None:
                    self.set_exception(error)
        return super().value()

    def value(self):
        return self.wait() if self._state is None and self.done() else super().value()

    def then(self, callback):
        return _Later(self, callback)


def collect_all(futures):
    """A future of the list of futures, done when all are."""
    futures = list(futures)
    whole = Future()
    if any(isinstance(f, (WorkFuture, _Later)) for f in futures):

        class All:
            def done(self):
                return all(f.done() for f in futures)

            def wait(self):
                for f in futures:
                    f.wait()

        return _Later(All(), lambda _: futures)
    left = [len(futures)]
    lock = threading.Lock()

    def one(_):
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            whole.set_result(futures)

    for f in futures:
        f.add_done_callback(one)
    if not futures:
        whole.set_result(futures)
    return whole


def wait_all(futures):
    """The values of all."""
    return [f.wait() for f in collect_all(futures).wait()]


__getattr__ = module_getattr(__name__)
