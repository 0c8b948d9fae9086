"""Variable: a tensor; PyTorch's older name."""

from .. import _C
from .._missing import module_getattr

Variable = _C.Tensor

__getattr__ = module_getattr(__name__)
