"""Device memory, where PyTorch keeps its functions."""

from .._missing import module_getattr
from ._memory import *  # noqa: F403
from ._memory import reset_peak_memory_stats

memory_cached = memory_reserved  # noqa: F405
max_memory_cached = max_memory_reserved  # noqa: F405
reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device=None):
    """Nothing is summed up over time."""


def get_allocator_backend():
    return "native"


__getattr__ = module_getattr(__name__)
