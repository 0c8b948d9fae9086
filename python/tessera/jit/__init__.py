"""torch.jit: programs run in Python: scripting and tracing give back what they are given."""

from typing import Final as Final

from .._missing import module_getattr
from ..nn import Module as _Module


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None, *, _loader=None):
    """The function, class or module itself."""
    return obj


def trace(func, example_inputs=None, *args, example_kwarg_inputs=None, **options):
    """The function or module itself; the example is not run."""
    return func


def trace_module(mod, inputs, *args, **options):
    return mod


def ignore(drop=False, **kwargs):
    """@ignore and @ignore(): nothing is compiled, so nothing has to be left out."""
    return drop if callable(drop) else lambda function: function


def unused(fn):
    return fn


export = script_method = script_if_tracing = _overload = _overload_method = interface = unused


def annotate(the_type, the_value):
    return the_value


def Attribute(value, type):
    return value


def is_scripting():
    return False


is_tracing = is_scripting


def isinstance(obj, target_type):
    """Is it of this type, as annotations write it (List[int])?"""
    import builtins
    import types
    import typing

    arguments = typing.get_args(target_type)
    kind = typing.get_origin(target_type)
    if kind is None:
        kinds = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
        return any(
            builtins.isinstance(obj, k) if builtins.isinstance(k, type) else isinstance(obj, k)
            for k in kinds
        )
    if kind in (typing.Union, types.UnionType):
        return any(isinstance(obj, a) for a in arguments)
    if not builtins.isinstance(obj, kind):
        return False
    if kind is dict:
        return all(
            isinstance(k, arguments[0]) and isinstance(v, arguments[1]) for k, v in obj.items()
        )
    if kind is tuple and Ellipsis not in arguments:
        return len(obj) == len(arguments) and all(map(isinstance, obj, arguments))
    return all(isinstance(item, arguments[0]) for item in obj)


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """The module itself, which has to be in evaluation mode as PyTorch asks."""
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() "
            "on your module before freezing."
        )
    return mod


def optimize_for_inference(mod, other_methods=None):
    return mod


def set_fusion_strategy(strategy):
    return strategy


class _Off:
    """A context and a decorator that does nothing."""

    def __init__(self, *args):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        pass

    def __call__(self, function):
        return function


class optimized_execution(_Off):
    pass


class fuser(_Off):
    pass


class strict_fusion(_Off):
    pass


class ScriptModule(_Module):
    """An ordinary module. What script() and trace() give back is none: it stays what it was."""


class RecursiveScriptModule(ScriptModule):
    pass


class TracedModule(ScriptModule):
    pass


class TopLevelTracedModule(TracedModule):
    pass


class ScriptFunction:
    """What no function is here: isinstance() says so."""


class Error(RuntimeError):
    """What a script raised, in PyTorch."""


class TracingCheckError(Exception):
    pass


class TracerWarning(Warning):
    @staticmethod
    def ignore_lib_warnings():
        """There are none."""


class ScriptWarning(Warning):
    pass


def run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None):
    """Changes nothing."""


_onednn_fusion = False


def enable_onednn_fusion(enabled):
    """Is remembered, and changes nothing."""
    global _onednn_fusion
    _onednn_fusion = bool(enabled)


def onednn_fusion_enabled():
    return _onednn_fusion


def save(m, f, _extra_files=None):
    raise NotImplementedError("torch.jit.save is not implemented in Tessera yet")


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    raise NotImplementedError("torch.jit.load is not implemented in Tessera yet")


def fork(func, *args, **kwargs):
    """Runs it now; wait() gives the result."""
    return _Done(func(*args, **kwargs))


class _Done:
    def __init__(self, value):
        self._value = value

    def wait(self):
        return self._value

    value = wait

    def done(self):
        return True


Future = _Done


def wait(future):
    return future.wait()


__getattr__ = module_getattr(__name__)
