"""The processor, by the functions that devices have."""

from contextlib import nullcontext

from .._missing import module_getattr


def is_available():
    return True


def is_initialized():
    return True


def device_count():
    return 1


def current_device():
    return "cpu"


def set_device(device):
    """There is one only."""


def synchronize(device=None):
    """Operators on the processor are done when they return, or when somebody looks."""


class Stream:
    """The processor has no streams: it does nothing."""

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        pass

    def record_event(self):
        pass

    def wait_event(self, event):
        pass


def current_stream(device=None):
    return Stream()


def stream(stream):
    return nullcontext()


def get_capabilities():
    """What the processor can, by names that /proc/cpuinfo uses where there is one."""
    try:
        with open("/proc/cpuinfo") as lines:
            words = next((line for line in lines if line.startswith("flags")), "").split()
    except OSError:
        words = []
    return {name: name in words for name in ("avx2", "avx512f", "avx512_vnni", "fma")}


__getattr__ = module_getattr(__name__)
