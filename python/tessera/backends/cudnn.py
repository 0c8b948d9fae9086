"""cuDNN's settings. Tessera obeys what they ask for where it uses cuDNN, and keeps them for
programs where it does not."""

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


def version():
    """None: cuDNN is not used."""
    return None


def is_available():
    """Is cuDNN used?"""
    return version() is not None


def is_acceptable(tensor):
    return is_available() and enabled and tensor.is_cuda


CUDNN_TENSOR_DTYPES = {_C.dtypes[n] for n in ("float16", "float32", "float64")}

__getattr__ = module_getattr(__name__)
