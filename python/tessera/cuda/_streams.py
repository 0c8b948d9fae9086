"""Streams and events."""

from .. import _C
from ._device import index_of


class Stream(_C.StreamBase):
    """A queue of work of a device."""

    def __init__(self, device=None, priority=0):
        super().__init__(index_of(device), priority)

    @property
    def device(self):
        return _C.device("cuda", self._device)

    @property
    def device_index(self):
        return self._device

    def record_event(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_stream(self, stream):
        self.wait_event(stream.record_event())

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


# What the binder hands out has the same methods as what programs make.
for _name in ("device", "device_index", "record_event", "wait_stream", "__repr__"):
    setattr(_C.StreamBase, _name, Stream.__dict__[_name])


class Event(_C.EventBase):
    """A point in a stream."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        if interprocess:
            raise NotImplementedError("Event(interprocess=True) is not implemented in Tessera yet")
        super().__init__(enable_timing)

    def record(self, stream=None):
        self._record(current_stream() if stream is None else stream)

    def wait(self, stream=None):
        self._wait(current_stream() if stream is None else stream)


def current_stream(device=None):
    return _C._current_stream(index_of(device))


def default_stream(device=None):
    return _C._default_stream(index_of(device))


def set_stream(stream):
    if stream is not None:
        stream._make_current()


class StreamContext:
    """Makes a stream current for a while, and its device."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is None:
            return
        self._device = _C._cuda_current_device()
        self._before = current_stream(self.stream._device)
        _C._cuda_set_device(self.stream._device)
        self.stream._make_current()

    def __exit__(self, *unused):
        if self.stream is None:
            return
        self._before._make_current()
        _C._cuda_set_device(self._device)


def stream(stream):
    return StreamContext(stream)
