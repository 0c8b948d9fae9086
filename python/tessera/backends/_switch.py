"""Settings of a module that a `flags()` context changes for a while."""

import sys
from contextlib import contextmanager


def flags_of(module_name, names):
    """`set_flags` and `flags` over the settings of these names in a module."""

    def set_flags(**changes):
        module = sys.modules[module_name]
        before = tuple(getattr(module, name) for name in names)
        for name, value in changes.items():
            if value is not None:
                setattr(module, name.lstrip("_"), value)
        return before

    @contextmanager
    def flags(**changes):
        module = sys.modules[module_name]
        unknown = set(changes) - set(names)
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument '{unknown.pop()}'")
        before = {name: getattr(module, name) for name in names}
        try:
            for name, value in changes.items():
                setattr(module, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(module, name, value)

    return set_flags, flags
