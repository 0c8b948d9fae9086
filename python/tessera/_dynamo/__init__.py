"""torch._dynamo, as far as programs use it: nothing is traced, so that nothing is to be done."""

from .._missing import module_getattr
from .._optimized_module import OptimizedModule
from ..compiler import (
    _Config,
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)

config = _Config()
disallow_in_graph = forbid_in_graph = allow_in_graph


def optimize(backend="inductor", **options):
    """A decorator that gives the function back."""
    return lambda function: function


optimize_assert = optimize


def graph_break(msg=""):
    """Does nothing: there is no graph."""


def mark_dynamic(t, index, **limits):
    """Does nothing: every size may differ from call to call."""


maybe_mark_dynamic = mark_dynamic


def mark_static(t, index=None):
    """Does nothing."""


__getattr__ = module_getattr(__name__)
