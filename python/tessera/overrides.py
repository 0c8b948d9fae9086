"""Helpers for classes that implement __torch_function__."""

from . import _C
from ._missing import module_getattr


def has_torch_function(relevant_args):
    """Does any of these handle calls itself?"""
    return _C._has_torch_function(*relevant_args)


def has_torch_function_unary(a):
    return _C._has_torch_function(a)


def has_torch_function_variadic(*args):
    return _C._has_torch_function(*args)


def is_tensor_like(inp):
    return isinstance(inp, _C.Tensor) or hasattr(type(inp), "__torch_function__")


def handle_torch_function(public_api, relevant_args, *args, **kwargs):
    """Asks the arguments in turn, as operators do."""
    types, ordered = [], []
    for arg in relevant_args:
        if not has_torch_function((arg,)) or type(arg) in types:
            continue
        at = next((i for i, t in enumerate(types) if issubclass(type(arg), t)), len(types))
        types.insert(at, type(arg))
        ordered.insert(at, arg)
    for arg in ordered:
        result = arg.__torch_function__(public_api, tuple(types), args, kwargs)
        if result is not NotImplemented:
            return result
    name = getattr(public_api, "__name__", public_api)
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__: {types}"
    )


__getattr__ = module_getattr(__name__)
