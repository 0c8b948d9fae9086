"""Mixed precision."""

from .. import _C
from .._grad_mode import _Context
from .._missing import module_getattr

_LOWER = tuple(_C.dtypes[name] for name in ("bfloat16", "float16"))


def is_autocast_available(device_type):
    return device_type.split(":")[0] in ("cpu", "cuda")


class autocast(_Context):
    """Within it, operators run in the precision their records name."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self.device = device_type.split(":")[0]
        self.fast_dtype = _C._autocast_dtype(self.device) if dtype is None else dtype
        self._cache_enabled = (
            _C._autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        )
        self._enabled = bool(enabled) and self._can()
        self._before = []

    def _can(self):
        import warnings

        if self.fast_dtype not in _LOWER:
            name = self.device.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=3,
            )
            return False
        if self.device == "cuda" and _C._cuda_device_count() == 0:
            warnings.warn("CUDA is not available. Disabling autocast.", stacklevel=3)
            return False
        return True

    def _again(self):
        return autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled)

    def __enter__(self):
        device = self.device
        self._before.append(
            (_C._autocast_enabled(device), _C._autocast_dtype(device), _C._autocast_cache_enabled())
        )
        _C._set_autocast(device, self._enabled, self.fast_dtype)
        _C._set_autocast_cache(self._cache_enabled)
        _C._autocast_enter()
        return self

    def __exit__(self, *unused):
        enabled, dtype, cached = self._before.pop()
        _C._autocast_leave()
        _C._set_autocast(self.device, enabled, dtype)
        _C._set_autocast_cache(cached)


def is_autocast_enabled(device_type="cuda"):
    return _C._autocast_enabled(device_type)


def get_autocast_dtype(device_type):
    return _C._autocast_dtype(device_type)


def set_autocast_enabled(device_type, enabled=None):
    """set_autocast_enabled(flag) is cuda's, as in PyTorch."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    _C._set_autocast(device_type, bool(enabled), _C._autocast_dtype(device_type))


def set_autocast_dtype(device_type, dtype):
    _C._set_autocast(device_type, _C._autocast_enabled(device_type), dtype)


is_autocast_cache_enabled = _C._autocast_cache_enabled
set_autocast_cache_enabled = _C._set_autocast_cache
clear_autocast_cache = _C._clear_autocast_cache


def autocast_increment_nesting():
    return _C._autocast_enter()


def autocast_decrement_nesting():
    return _C._autocast_leave()


# PyTorch's older names, of one kind of device each.
def is_autocast_cpu_enabled():
    return _C._autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled):
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype():
    return _C._autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype):
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype():
    return _C._autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype):
    set_autocast_dtype("cuda", dtype)


_FILES = {"GradScaler": "grad_scaler", "custom_fwd": "autocast_mode", "custom_bwd": "autocast_mode"}
__getattr__ = module_getattr(__name__, _FILES)


def __dir__():
    return sorted({*globals(), *_FILES})
