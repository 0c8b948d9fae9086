"""What torch.serialization has beside saving and loading: the list of what a file may name."""

from contextlib import contextmanager
from enum import Enum

_safe = []


class LoadEndianness(Enum):
    """The order of bytes that a file is taken to have where it says nothing."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class SourceChangeWarning(Warning):
    """A class's code is not what it was when a file was written."""


_endianness = None


def get_default_load_endianness():
    return _endianness


def set_default_load_endianness(endianness):
    global _endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _endianness = endianness


def add_safe_globals(safe_globals):
    """Classes and functions that a file may name though it is loaded with weights_only."""
    for item in safe_globals:
        if item not in _safe:
            _safe.append(item)


def get_safe_globals():
    return list(_safe)


def clear_safe_globals():
    _safe.clear()


@contextmanager
def safe_globals(safe_globals):
    """add_safe_globals() for a while."""
    before = list(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe[:] = before
