"""Linear algebra."""

from .. import _C
from .._missing import module_getattr
from .._operators import functions

LinAlgError = _C._LinAlgError
globals().update(functions("linalg"))
__getattr__ = module_getattr(__name__)
