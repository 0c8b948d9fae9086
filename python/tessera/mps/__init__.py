"""Apple's GPUs: there are none for Tessera."""

from .._missing import module_getattr


def is_available():
    return False


def device_count():
    return 0


def _refuse():
    raise RuntimeError("torch.mps: Tessera has no device of this type")


def synchronize():
    _refuse()


def empty_cache():
    """Nothing is cached."""


def manual_seed(seed):
    """There is no generator to seed."""


def current_allocated_memory():
    return 0


def driver_allocated_memory():
    return 0


__getattr__ = module_getattr(__name__)
