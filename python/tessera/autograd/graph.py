"""The nodes of graphs."""

from .._C import Node as Node
from .._missing import module_getattr

__getattr__ = module_getattr(__name__)
