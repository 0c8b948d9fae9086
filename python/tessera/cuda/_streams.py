"""Streams and events of cuda devices."""

from .. import _C
from .._streams import Event as _AnyEvent
from .._streams import Stream as _AnyStream
from ._device import index_of


class Stream(_AnyStream):
    """A queue of work of a device."""

    @property
    def cuda_stream(self):
        return self._handle

    @property
    def _as_parameter_(self):
        import ctypes

        return ctypes.c_void_p(self._handle)

    @staticmethod
    def priority_range():
        """The least and the greatest priority: lower numbers go first."""
        return _C._priority_range()

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self._handle:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by its address; that library keeps it alive."""

    def __init__(self, stream_ptr, device=None):
        super().__init__(stream_id=stream_ptr, device_index=index_of(device))


def get_stream_from_external(data_ptr, device=None):
    return ExternalStream(data_ptr, device)


class Event(_AnyEvent):
    """A point in a stream."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        super().__init__(enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    @property
    def cuda_event(self):
        return self._handle

    @classmethod
    def from_ipc_handle(cls, device, handle):
        raise NotImplementedError("Event.from_ipc_handle is not implemented in Tessera yet")

    def __repr__(self):
        if self._handle:
            return f"<torch.cuda.Event {self._handle:#x}>"
        return "<torch.cuda.Event uninitialized>"


def current_stream(device=None):
    """The stream that work goes to now."""
    index, handle = _C._current_stream(index_of(device))
    return Stream(stream_id=handle, device_index=index)


def default_stream(device=None):
    """The stream that work goes to unless a program says otherwise."""
    return Stream(stream_id=0, device_index=index_of(device))


def set_stream(stream):
    """Makes a stream current, and its device; None changes nothing."""
    if stream is not None:
        stream._make_current()


class StreamContext:
    """Makes a stream current for a while, and its device; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream
        self.idx = -1 if stream is None else stream._device

    def __enter__(self):
        if self.stream is None:
            return
        self._device = _C._cuda_current_device()
        self._before = current_stream(self.idx)
        self.stream._make_current()

    def __exit__(self, *unused):
        if self.stream is None:
            return
        self._before._make_current()
        _C._cuda_set_device(self._device)


def stream(stream):
    return StreamContext(stream)
