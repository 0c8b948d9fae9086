"""Skips what waits for an operator, and only that."""

import contextlib
import functools

import pytest

import tessera as torch
from tessera._missing import MissingError


def need(*paths):
    """Skips the test while one of these dotted names of PyTorch's is not there."""
    for path in paths:
        try:
            functools.reduce(getattr, path.split("."), torch)
        except MissingError:
            pytest.skip(f"waits for {path}")


@contextlib.contextmanager
def operators_may_be_missing():
    """Skips where what runs within asked for a name of PyTorch's that is not there yet.

    A name that PyTorch does not have raises a plain AttributeError: a mistake stays one.
    """
    try:
        yield
    except Exception as error:
        cause = error
        while cause is not None and not isinstance(cause, MissingError):
            cause = cause.__cause__
        if cause is None:
            raise
        pytest.skip(f"waits for {cause.args[0].split()[0]}")
