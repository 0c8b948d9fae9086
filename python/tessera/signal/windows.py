"""Windows for signals, derived from their records."""

from .._missing import module_getattr
from .._operators import functions

globals().update(functions("signal.windows"))
__getattr__ = module_getattr(__name__)
