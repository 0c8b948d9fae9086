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


__getattr__ = module_getattr(__name__)
