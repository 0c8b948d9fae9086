"""What a device is doing: its driver (NVML) is asked."""

from .. import _C
from ._device import _existing


def _asked(what, device, name):
    value = _C._cuda_monitor(_existing(device))[what]
    if value < 0:
        raise RuntimeError(f"torch.cuda.{name}(): the device does not say")
    return value


def utilization(device=None):
    """Percent of the last second or less in which some kernel ran."""
    return _asked("busy", device, "utilization")


def memory_usage(device=None):
    """Percent of the last second or less in which device memory was read or written."""
    return _asked("memory_busy", device, "memory_usage")


def temperature(device=None):
    """Degrees Celsius."""
    return _asked("temperature", device, "temperature")


def power_draw(device=None):
    """Milliwatts."""
    return _asked("power_mw", device, "power_draw")


def clock_rate(device=None):
    """The speed of the multiprocessors in MHz."""
    return _asked("clock_mhz", device, "clock_rate")


def fan_speed(device=None):
    """Percent of the fan's greatest speed. Not in PyTorch."""
    return _asked("fan", device, "fan_speed")


def performance_state(device=None):
    """P0, the fastest, is 0. Not in PyTorch."""
    return _asked("performance_state", device, "performance_state")


def device_memory_used(device=None):
    """Bytes in use on the device, other processes' included."""
    free, total = _C._cuda_memory_info(_existing(device))
    return total - free
