"""What cuda devices can, and settings that PyTorch has for them."""

from ._device import (
    device_count,
    get_device_capability,
    get_device_properties,
    init,
    is_available,
)

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
    real = [i for i in range(device_count()) if not get_device_properties(i).is_virtual]
    return sorted({"sm_{}{}".format(*get_device_capability(i)) for i in real})


def get_gencode_flags():
    return ""


def ipc_collect():
    """Memory shared with processes that ended; none is."""


def get_sync_debug_mode():
    return 0


def set_sync_debug_mode(debug_mode):
    if debug_mode not in (0, "default"):
        raise NotImplementedError(
            "torch.cuda.set_sync_debug_mode is not implemented in Tessera yet"
        )


_lazy_init = init  # raises where there is no device, as PyTorch does at first use


def _is_compiled():
    return True
