"""Batches in memory that a device can read directly."""

import collections.abc

from tessera import _C

from .collate import _rebuilt_mapping, _rebuilt_sequence


def pin_memory(data, device=None):
    """The same data with all tensors in pinned memory.

    The tensors are found first and pinned by one call, during which other threads run. Pinned
    memory is every device's: `device` makes no difference.
    """
    found = []
    _collect(data, found)
    return _replaced(data, iter(_C._pin_tensors(found)))


def _collect(data, found):
    if isinstance(data, _C.Tensor):
        found.append(data)
    elif isinstance(data, (str, bytes)) or hasattr(data, "pin_memory"):
        pass
    elif isinstance(data, collections.abc.Mapping):
        for value in data.values():
            _collect(value, found)
    elif isinstance(data, collections.abc.Sequence):
        for value in data:
            _collect(value, found)


def _replaced(data, pinned):
    """The data with the next of `pinned` in the place of each tensor, in the order of _collect."""
    if isinstance(data, _C.Tensor):
        return next(pinned)
    if isinstance(data, (str, bytes)):
        return data
    if hasattr(data, "pin_memory"):  # a batch of the program's own class
        return data.pin_memory()
    if isinstance(data, collections.abc.Mapping):
        return _rebuilt_mapping(data, {k: _replaced(v, pinned) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(_replaced(v, pinned) for v in data))
    if isinstance(data, tuple):
        return [_replaced(v, pinned) for v in data]
    if isinstance(data, collections.abc.Sequence):
        return _rebuilt_sequence(data, [_replaced(v, pinned) for v in data])
    return data
