"""torch.cuda.amp.autocast: the older name."""

from .._missing import module_getattr
from ..amp import autocast as _autocast


class autocast(_autocast):
    def __init__(self, enabled=True, dtype=None, cache_enabled=None):
        super().__init__("cuda", dtype, enabled)

    def _again(self):
        return autocast(self._enabled, self.fast_dtype)


__getattr__ = module_getattr(__name__)
