"""Reductions and normalisations over the elements that a mask leaves."""

from .._missing import module_getattr
from .._operators import functions

globals().update(functions("masked"))
__getattr__ = module_getattr(__name__)
