"""Which kernel computes attention: a choice that programs name."""

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
    """Takes a kernel's name, or a list of them: those that may be chosen from, for a while. A fused
    kernel that cannot compute a call leaves it to the plain one."""
    if isinstance(backends, SDPBackend):
        backends = [backends]
    if not isinstance(backends, (list, tuple)) or not all(
        isinstance(b, SDPBackend) for b in backends
    ):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances"
        )
    from ...backends.cuda import sdp_kernel

    with sdp_kernel(
        enable_flash=SDPBackend.FLASH_ATTENTION in backends,
        enable_math=SDPBackend.MATH in backends,
        enable_mem_efficient=SDPBackend.EFFICIENT_ATTENTION in backends,
        enable_cudnn=SDPBackend.CUDNN_ATTENTION in backends,
    ):
        yield {}
