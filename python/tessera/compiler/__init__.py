"""torch.compiler: there is no compile step, so that most of it has nothing to do."""

import sys

from contextlib import nullcontext

from .._compile import compile as _compile
from .._missing import module_getattr


def compile(*args, **kwargs):
    return _compile(*args, **kwargs)


def is_compiling():
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset():
    """Forgets captured graphs; there is nothing else to forget."""
    if calls := sys.modules.get("tessera._graph_calls"):
        calls.reset()


def disable(fn=None, recursive=True, *, reason=None):
    """Gives the function back: it is not compiled anyway."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn):
    return fn


assume_constant_result = nested_compile_region = allow_in_graph


def set_stance(stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
    """A context that changes nothing."""
    return nullcontext()


def list_backends(exclude_tags=("debug", "experimental")):
    return []


def cudagraph_mark_step_begin():
    """Says that a step begins. Results are never written over here, whenever a step begins."""


def set_default_backend(backend):
    """Nothing is compiled, by whichever."""


def substitute_in_graph(
    original_fn, *, can_constant_fold_through=False, skip_signature_check=False
):
    """A decorator that gives the function back: there are no graphs to put it into."""
    return lambda function: function


class _Config:
    """Settings of a compiler that is not there: kept, and without effect."""


config = _Config()


def wrap_numpy(fn):
    raise NotImplementedError("torch.compiler.wrap_numpy is not implemented in Tessera yet")


__getattr__ = module_getattr(__name__)
