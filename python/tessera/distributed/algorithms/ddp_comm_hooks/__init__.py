"""Communication hooks for DistributedDataParallel."""

from ...._missing import module_getattr

__getattr__ = module_getattr(__name__)
