"""DataParallel: one device passes through; a batch over several devices is not there yet."""

import tessera as torch

from ..modules.module import Module


def _device_ids(device_ids):
    if device_ids is None:
        device_ids = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    return [d if isinstance(d, int) else torch.device(d).index for d in device_ids]


class DataParallel(Module):
    """Calls its module; on several devices it raises when called, unless device_ids has one."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.dim = dim
        self.module = module
        self.device_ids = _device_ids(device_ids)
        first = self.device_ids[0] if self.device_ids else None
        self.output_device = first if output_device is None else output_device
        if len(self.device_ids) == 1:
            self.module.to(torch.device("cuda", first))

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        if len(self.device_ids) > 1:
            raise NotImplementedError(
                "DataParallel over several devices is not implemented in Tessera yet: give "
                "device_ids=[0]"
            )
        device = torch.device("cuda", self.device_ids[0])
        moved = [_moved(x, device) for x in inputs]
        return self.module(*moved, **{k: _moved(v, device) for k, v in kwargs.items()})


def _moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return type(value)((k, _moved(v, device)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        parts = [_moved(v, device) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """DataParallel's call as a function."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
