"""The named tuples that operators with several results give."""

from . import _C


def __getattr__(name):
    found = None if name.startswith("__") else _C._return_type(name)
    if found is None:
        raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'", name=name)
    globals()[name] = found
    return found
