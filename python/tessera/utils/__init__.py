"""What stands beside tensors and networks: data, hooks, progress."""

from .._missing import module_getattr

__getattr__ = module_getattr(__name__)
