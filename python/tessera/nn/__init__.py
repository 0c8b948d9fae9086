"""Neural networks: modules, parameters, functions. Files load when a name of theirs is used."""

from .._lazy import lazy_names
from . import functional
from . import modules
from .modules.module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

_FILES = {
    "modules": " ".join(modules.__all__),
    "parallel": "DataParallel",
    "parameter": "Buffer Parameter UninitializedBuffer UninitializedParameter",
}


def factory_kwargs(kwargs):
    """The device and dtype among a layer's arguments, from there or from `factory_kwargs`."""
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - (simple | {"factory_kwargs"})
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    made = dict(kwargs.get("factory_kwargs", {}))
    for key in simple:
        if key in kwargs:
            if key in made:
                raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
            made[key] = kwargs[key]
    return made


__getattr__, __dir__, __all__ = lazy_names(__name__, _FILES)
__all__.append("factory_kwargs")
