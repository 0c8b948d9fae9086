"""Which kernel computes attention: a choice that programs name. There is one here."""

import contextlib
from enum import IntEnum


class SDPBackend(IntEnum):
    """PyTorch's names of kernels."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Takes a kernel's name, or a list of them. The result is the same whichever is named."""
    if isinstance(backends, SDPBackend):
        backends = [backends]
    if not isinstance(backends, (list, tuple)) or not all(
        isinstance(b, SDPBackend) for b in backends
    ):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances"
        )
    yield {}
