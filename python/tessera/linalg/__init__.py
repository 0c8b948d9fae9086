"""Linear algebra."""

from .. import _C
from .._missing import module_getattr
from .._operators import functions

LinAlgError = _C._LinAlgError
globals().update(functions("linalg"))
TYPE_CHECKING = False  # true for type checkers, which know the name
if TYPE_CHECKING:
    from .._linalg_ops import *  # noqa: F403
__getattr__ = module_getattr(__name__)
