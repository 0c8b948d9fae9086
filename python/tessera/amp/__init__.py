"""Mixed precision."""

from .. import _C
from .._grad_mode import _Context
from .._missing import module_getattr


class autocast(_Context):
    """Within it, operators run in the precision their records name."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type.split(":")[0]
        if self.device not in ("cpu", "cuda"):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        usual = _C.dtypes["bfloat16" if self.device == "cpu" else "float16"]
        self.fast_dtype = usual if dtype is None else dtype
        self._enabled = bool(enabled)
        self._before = []

    def _again(self):
        return autocast(self.device, self.fast_dtype, self._enabled)

    def __enter__(self):
        self._before.append((_C._autocast_enabled(self.device), _C._autocast_dtype(self.device)))
        _C._set_autocast(self.device, self._enabled, self.fast_dtype)
        return self

    def __exit__(self, *unused):
        _C._set_autocast(self.device, *self._before.pop())


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


def is_autocast_available(device_type):
    return device_type in ("cpu", "cuda")


_FILES = {"GradScaler": "grad_scaler", "custom_fwd": "autocast_mode", "custom_bwd": "autocast_mode"}
__getattr__ = module_getattr(__name__, _FILES)


def __dir__():
    return sorted({*globals(), *_FILES})
