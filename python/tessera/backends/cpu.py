"""The processor."""

from .. import _C
from .._missing import module_getattr


def get_cpu_capability():
    """PyTorch's name for the instruction set in use: DEFAULT, AVX2 or AVX512."""
    about = _C._about_backend("cpu").lower()
    for word, name in (("avx-512", "AVX512"), ("avx2", "AVX2")):
        if word in about:
            return name
    return "DEFAULT"


__getattr__ = module_getattr(__name__)
