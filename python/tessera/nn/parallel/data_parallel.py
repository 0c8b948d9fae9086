"""DataParallel: a batch cut over the devices of this process."""

import tessera as torch

from ..modules.module import Module
from .scatter_gather import gather, scatter_kwargs


def _device_ids(device_ids):
    if device_ids is None:
        device_ids = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    return [d if isinstance(d, int) else torch.device(d).index for d in device_ids]


class DataParallel(Module):
    """Each device computes a part of the batch, with copies of the parameters.

    Gradients flow back through the copies to the parameters, which are on the first device. What
    the copies on other devices write into their buffers is lost.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.dim = dim
        self.module = module
        self.device_ids = _device_ids(device_ids)
        first = self.device_ids[0] if self.device_ids else None
        self.output_device = first if output_device is None else output_device
        self.src_device_obj = torch.device("cuda", first) if self.device_ids else None
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for tensor in (*self.module.parameters(), *self.module.buffers()):
            if tensor.device != self.src_device_obj:
                raise RuntimeError(
                    "module must have its parameters and buffers on device "
                    f"{self.src_device_obj} (device_ids[0]) but found one of them on device: "
                    f"{tensor.device}"
                )
        inputs, kwargs = scatter_kwargs(inputs, kwargs, self.device_ids, self.dim)
        if not inputs:
            inputs, kwargs = ((),), ({},)
        if len(inputs) == 1:
            return self.module(*inputs[0], **kwargs[0])
        outputs = [
            self._on_device(device, args, named)
            for device, args, named in zip(self.device_ids, inputs, kwargs)
        ]
        return gather(outputs, self.output_device, self.dim)

    def _on_device(self, device, args, kwargs):
        """Devices work at the same time: calls only queue what they have to do."""
        if device == self.device_ids[0]:
            return self.module(*args, **kwargs)
        from ..utils.stateless import functional_call

        place = torch.device("cuda", device)
        copies = {name: p.to(place) for name, p in self.module.named_parameters()}
        copies.update((name, b.to(place)) for name, b in self.module.named_buffers())
        with torch.cuda.device(device):
            return functional_call(self.module, copies, args, kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """DataParallel's call as a function."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
