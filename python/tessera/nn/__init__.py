"""Parameters and functions of neural networks."""

from . import functional
from .parameter import Parameter

from .._missing import module_getattr

__getattr__ = module_getattr(__name__)
