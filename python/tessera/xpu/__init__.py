"""Intel's GPUs: there are none for Tessera."""

from .._missing import module_getattr


def is_available():
    return False


def is_initialized():
    return False


def is_bf16_supported():
    return False


def device_count():
    return 0


def _refuse():
    raise RuntimeError("torch.xpu: Tessera has no device of this type")


def current_device():
    _refuse()


def set_device(device):
    _refuse()


def get_device_name(device=None):
    _refuse()


def get_device_properties(device=None):
    _refuse()


def synchronize(device=None):
    _refuse()


def empty_cache():
    """Nothing is cached."""


def manual_seed(seed):
    """There is no generator to seed."""


manual_seed_all = manual_seed


def memory_allocated(device=None):
    return 0


memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated


__getattr__ = module_getattr(__name__)
