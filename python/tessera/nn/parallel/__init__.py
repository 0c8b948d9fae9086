"""Modules over several devices, and over several processes."""

from ..._lazy import lazy_names

_FILES = {
    "data_parallel": "DataParallel",
    "scatter_gather": "gather scatter scatter_kwargs",
    "distributed": "DistributedDataParallel",
}

__getattr__, __dir__, __all__ = lazy_names(__name__, _FILES)
__all__ += ["data_parallel", "parallel_apply", "replicate"]

# The files must not take the functions' names.
from .data_parallel import data_parallel
from .parallel_apply import parallel_apply
from .replicate import replicate
