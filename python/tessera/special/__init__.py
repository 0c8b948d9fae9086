"""Special functions."""

from .._missing import module_getattr
from .._operators import functions

globals().update(functions("special"))
__getattr__ = module_getattr(__name__)
