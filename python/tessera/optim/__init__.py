"""Optimizers: the arithmetic is in operators that step all parameters at once."""

from .optimizer import Optimizer
from .sgd import SGD

from .._missing import module_getattr

__getattr__ = module_getattr(__name__)
