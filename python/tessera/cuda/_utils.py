"""A helper that libraries over PyTorch import from here."""

from .. import _C
from ._device import current_device


def _get_device_index(device, optional=False, allow_cpu=False):
    """A device's number; with `optional`, the current one's for None and "cuda"."""
    if isinstance(device, int):
        return device
    device = None if device is None else _C.device(device)
    if device is not None and device.type != "cuda":
        if allow_cpu and device.type == "cpu":
            return -1
        raise ValueError(f"Expected a cuda device, but got: {device}")
    if device is not None and device.index is not None:
        return device.index
    if optional:
        return current_device()
    raise ValueError(
        "Expected a torch.device with a specified index or an integer, but got: " + str(device)
    )
