"""Modules over several devices."""

from ..._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__, {"data_parallel": "DataParallel data_parallel"}
)
from .data_parallel import data_parallel
