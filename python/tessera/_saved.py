"""What the reader of files asks Python for: the objects that its values stand for."""

from . import _C
from ._missing import module_getattr


def big_int(data):
    return int.from_bytes(data, "little", signed=True)


def constant(name):
    from . import _layout

    return getattr(_layout, name)


def storage_type(dtype):
    from . import storage

    return storage.UntypedStorage if dtype is None else storage.legacy_class(dtype)


def tensor_type(name):
    from .nn import Parameter

    return Parameter if name == "Parameter" else _C.Tensor


def function(full_name):
    """One of the reader's own table; handed out, never called there."""
    import importlib

    module, name = full_name.rsplit(".", 1)
    if module.startswith("torch"):
        module = "tessera" + module.removeprefix("torch")
    return getattr(importlib.import_module(module), name)


def storage(memory, dtype):
    from .storage import TypedStorage, storage_of

    untyped = storage_of(memory)
    return untyped if dtype is None else TypedStorage(wrap_storage=untyped, dtype=dtype)


def new_object(cls, args):
    return cls.__new__(cls, *args)


def set_state(obj, state):
    """Attributes of a dict or a tensor; of what the user allowed, what its class makes of them."""
    if isinstance(obj, (dict, _C.Tensor)):
        for name, value in state.items():
            if not isinstance(name, str) or name.startswith("__"):
                from pickle import UnpicklingError

                raise UnpicklingError(f"an attribute named {name!r} cannot come from a file")
            setattr(obj, name, value)
    elif hasattr(obj, "__setstate__"):
        obj.__setstate__(state)
    else:
        slots = None
        if isinstance(state, tuple) and len(state) == 2:
            state, slots = state
        if state:
            obj.__dict__.update(state)
        for name, value in (slots or {}).items():
            setattr(obj, name, value)


__getattr__ = module_getattr(__name__)
