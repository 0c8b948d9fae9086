"""Special functions."""

from .._missing import module_getattr
from .._operators import functions

globals().update(functions("special"))
TYPE_CHECKING = False  # true for type checkers, which know the name
if TYPE_CHECKING:
    from .._special_ops import *  # noqa: F403
__getattr__ = module_getattr(__name__)
