"""Making modules without filling their parameters."""

import inspect

from ..modules.module import Module


def skip_init(module_cls, *args, **kwargs):
    """The module with parameters that hold whatever their memory holds."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    final = kwargs.pop("device", "cpu")
    kwargs["device"] = "meta"
    return module_cls(*args, **kwargs).to_empty(device=final)
