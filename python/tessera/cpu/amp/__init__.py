"""torch.cpu.amp: the older names of what is in torch.amp."""

from ..._missing import module_getattr
from ...amp import autocast as _autocast


class autocast(_autocast):
    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cpu", dtype, enabled, cache_enabled)

    def _again(self):
        return autocast(self._enabled, self.fast_dtype, self._cache_enabled)


__getattr__ = module_getattr(__name__, {"GradScaler": "grad_scaler"})
