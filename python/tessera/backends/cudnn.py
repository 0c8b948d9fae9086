"""cuDNN's settings: convolutions on CUDA obey them."""

import sys
from types import ModuleType

from .. import _C
from .._missing import module_getattr
from ._switch import flags_of

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"

set_flags, flags = flags_of(
    __name__, ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
)

# As tessera/ops/conv/settings.h has them.
_FLAGS = {"enabled": 1, "benchmark": 2, "deterministic": 4, "allow_tf32": 8}


class _Settings(ModuleType):
    """Tells the core when one of them changes."""

    def __setattr__(self, name, value):
        if name in _FLAGS:
            value = bool(value)
            _C._set_conv_flag(_FLAGS[name], value)
        elif name == "benchmark_limit":
            value = int(value)
            _C._set_conv_benchmark_limit(value)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Settings


def version():
    """As cuDNN counts them, 91900 for 9.19.0; None where there is no GPU or no cuDNN."""
    return _C._cudnn_version() or None


def is_available():
    """Is cuDNN used?"""
    return version() is not None


def is_acceptable(tensor):
    return is_available() and enabled and tensor.is_cuda


CUDNN_TENSOR_DTYPES = {_C.dtypes[n] for n in ("float16", "float32", "float64")}

__getattr__ = module_getattr(__name__)
