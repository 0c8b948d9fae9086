"""Fourier transforms."""

from .._missing import module_getattr
from .._operators import functions

globals().update(functions("fft"))
__getattr__ = module_getattr(__name__)
