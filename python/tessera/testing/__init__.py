"""Comparison of results, and tensors to test with."""

from .._missing import module_getattr
from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor

__getattr__ = module_getattr(__name__)
