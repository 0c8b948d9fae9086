"""Intel's MKL: not used by Tessera."""

from .._missing import module_getattr


def is_available():
    return False


__getattr__ = module_getattr(__name__)
