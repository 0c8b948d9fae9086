"""Reductions and normalisations over the elements that a mask leaves."""

from .._missing import module_getattr
from .._operators import functions

globals().update(functions("masked"))
_prod = globals()["prod"]


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product of the elements whose mask is true; as in PyTorch, of no dimension where `dim` is
    an empty list, and of all where it is an empty tuple."""
    if isinstance(dim, list) and not dim:
        return _prod(input.unsqueeze(0), 0, dtype=dtype, mask=mask)
    return _prod(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)


__getattr__ = module_getattr(__name__)
