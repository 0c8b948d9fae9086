"""Fourier transforms."""

from .._missing import module_getattr
from .._operators import functions

globals().update(functions("fft"))
TYPE_CHECKING = False  # true for type checkers, which know the name
if TYPE_CHECKING:
    from .._fft_ops import *  # noqa: F403
__getattr__ = module_getattr(__name__)
