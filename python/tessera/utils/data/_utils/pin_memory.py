"""Batches in memory that a device can read directly."""

import collections.abc

import tessera as torch

from .collate import _rebuilt_mapping, _rebuilt_sequence


def pin_memory(data, device=None):
    """The same data with all tensors in pinned memory."""
    if isinstance(data, torch.Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return _rebuilt_mapping(data, {k: pin_memory(v, device) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(v, device) for v in data))
    if isinstance(data, tuple):
        return [pin_memory(v, device) for v in data]
    if isinstance(data, collections.abc.Sequence):
        return _rebuilt_sequence(data, [pin_memory(v, device) for v in data])
    return data
