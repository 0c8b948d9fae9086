"""What cuda devices can, and settings that PyTorch has for them."""

from .. import _C
from ._device import current_device, get_device_capability, get_device_properties, is_available

has_half = True
has_magma = False


def is_bf16_supported(including_emulation=True):
    """Has the current device bfloat16? All have, some slowly."""
    if not is_available():
        return False
    return including_emulation or get_device_capability()[0] >= 8


def is_tf32_supported():
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list():
    """Kernels are compiled where they run: for the devices that are there."""
    if not is_available() or get_device_properties(0).is_virtual:
        return []
    return [f"sm_{major}{minor}" for major, minor in [get_device_capability(current_device())]]


def get_gencode_flags():
    return ""


def ipc_collect():
    """Memory shared with processes that ended; none is."""


def is_current_stream_capturing():
    return False


def get_sync_debug_mode():
    return 0


def set_sync_debug_mode(debug_mode):
    if debug_mode not in (0, "default"):
        raise NotImplementedError(
            "torch.cuda.set_sync_debug_mode is not implemented in Tessera yet"
        )


def _lazy_init():
    """Raises where there is no device, as PyTorch does at first use."""
    if not is_available():
        raise RuntimeError("No CUDA GPUs are available: " + _C._cuda_why_unavailable())


def _is_compiled():
    return True
