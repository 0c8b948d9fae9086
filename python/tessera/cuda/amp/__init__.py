"""torch.cuda.amp: the older names of what is in torch.amp."""

import functools

from ..._missing import module_getattr
from ...amp import autocast as _autocast


class autocast(_autocast):
    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cuda", dtype, enabled, cache_enabled)

    def _again(self):
        return autocast(self._enabled, self.fast_dtype, self._cache_enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    from ...amp import custom_fwd

    if fwd is None:
        return functools.partial(custom_fwd, device_type="cuda", cast_inputs=cast_inputs)
    return custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    from ...amp import custom_bwd

    return custom_bwd(bwd, device_type="cuda")


__getattr__ = module_getattr(
    __name__, {"GradScaler": "grad_scaler", "amp_definitely_not_available": "common"}
)
