"""torch.Stream and torch.Event: of whatever accelerator is there; torch.cuda has kinds of them."""

from . import _C


def index_of(device):
    from .cuda._device import index_of  # cuda's kinds of them come from here

    return index_of(device)


def _current(device):
    from .cuda import current_stream

    return current_stream(device)


class Stream(_C.StreamBase):
    """A queue of work of a device."""

    def __init__(self, device=None, priority=0, *, stream_id=None, device_index=None, **unused):
        if stream_id is None:
            super().__init__(index_of(device), priority)
        else:  # one that is known by the numbers another one gave of itself
            super().__init__(-1 if device_index is None else device_index, stream_id, True)

    @property
    def device(self):
        return _C.device("cuda", self._device)

    @property
    def device_index(self):
        return self._device

    @property
    def device_type(self):
        return 1  # PyTorch's number of cuda

    @property
    def stream_id(self):
        return self._handle

    def query(self):
        """Is all its work done?"""
        return self._query()

    def synchronize(self):
        """Waits until all its work is done."""
        self._synchronize()

    def wait_event(self, event):
        """Work queued from now on runs after the event."""
        self._wait_event(event)

    def wait_stream(self, stream):
        """Work queued from now on runs after what the other stream has now."""
        self.wait_event(stream.record_event())

    def record_event(self, event=None):
        if event is None:
            from .cuda import Event as CudaEvent

            event = CudaEvent()
        event.record(self)
        return event

    def __eq__(self, other):
        if not isinstance(other, _C.StreamBase):
            return NotImplemented
        return self._handle == other._handle and self._device == other._device

    def __hash__(self):
        return hash((self._handle, self._device))

    def __enter__(self):
        # A stack: one stream may be entered again inside itself.
        before = self.__dict__.setdefault("_before", [])
        before.append((_C._cuda_current_device(), _current(self._device)))
        self._make_current()
        return self

    def __exit__(self, *unused):
        device, stream = self._before.pop()
        stream._make_current()
        _C._cuda_set_device(device)

    def __repr__(self):
        return (
            f"<torch.Stream device_type=cuda device_index={self._device} stream_id={self._handle}>"
        )


class Event(_C.EventBase):
    """A point in a stream."""

    def __init__(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        index_of(device)
        if interprocess:
            raise NotImplementedError("Event(interprocess=True) is not implemented in Tessera yet")
        super().__init__(bool(enable_timing))

    @property
    def device(self):
        """Where it was recorded; None before that."""
        return None if self._device < 0 else _C.device("cuda", self._device)

    @property
    def event_id(self):
        return self._handle

    def record(self, stream=None):
        """Marks the end of what the stream (the current one) has now."""
        self._record(_current(None) if stream is None else stream)

    def wait(self, stream=None):
        """Makes the stream (the current one) wait for it."""
        self._wait(_current(None) if stream is None else stream)

    def query(self):
        """Is everything before it done?"""
        return self._query()

    def synchronize(self):
        """Waits until everything before it is done."""
        self._synchronize()

    def elapsed_time(self, end_event):
        """Milliseconds from this one to another one."""
        return self._elapsed_time(end_event)

    def ipc_handle(self):
        raise NotImplementedError("Event.ipc_handle is not implemented in Tessera yet")

    def __repr__(self):
        return f"torch.Event device_type=cuda, device_index={self._device}, event_id={self._handle}"
