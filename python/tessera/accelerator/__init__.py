"""The accelerator that is there, whatever its kind: a cuda device, real or virtual."""

from .. import _C, cuda
from .._missing import module_getattr
from ..cuda import current_stream, device_count, set_stream, synchronize


def is_available():
    return cuda.is_available()


def current_accelerator(check_available=False):
    """Its device type, without an index; None where there is none."""
    return _C.device("cuda") if is_available() else None


def current_device_index():
    return cuda.current_device()


def set_device_index(device):
    cuda.set_device(device)


current_device_idx = current_device_index
set_device_idx = set_device_index


class device_index:
    """Makes a device current for a while; None changes nothing."""

    def __init__(self, device):
        self.idx = device

    def __enter__(self):
        if self.idx is not None:
            self._before = cuda.current_device()
            cuda.set_device(self.idx)

    def __exit__(self, *unused):
        if self.idx is not None:
            cuda.set_device(self._before)


def empty_cache():
    cuda.empty_cache()


def memory_allocated(device=None):
    return cuda.memory_allocated(device)


def memory_reserved(device=None):
    return cuda.memory_reserved(device)


def max_memory_allocated(device=None):
    return cuda.max_memory_allocated(device)


def max_memory_reserved(device=None):
    return cuda.max_memory_reserved(device)


def memory_stats(device=None):
    return cuda.memory_stats(device)


def reset_peak_memory_stats(device=None):
    cuda.reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device=None):
    cuda.reset_accumulated_memory_stats(device)


def get_memory_info(device=None):
    return cuda.mem_get_info(device)


__getattr__ = module_getattr(__name__)
