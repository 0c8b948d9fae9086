"""Modules over several devices."""

from ..._lazy import lazy_names

_FILES = {
    "data_parallel": "DataParallel data_parallel",
    "scatter_gather": "gather scatter",
}

__getattr__, __dir__, __all__ = lazy_names(__name__, _FILES)

# The file must not take the function's name.
from .data_parallel import data_parallel
