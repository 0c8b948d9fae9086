"""Windows for signals, derived from their records."""

from .._missing import module_getattr
from .._operators import functions

globals().update(functions("signal.windows"))
TYPE_CHECKING = False  # true for type checkers, which know the name
if TYPE_CHECKING:
    from .._signal_windows_ops import *  # noqa: F403
__getattr__ = module_getattr(__name__)
