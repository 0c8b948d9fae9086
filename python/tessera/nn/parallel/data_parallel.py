"""DataParallel: a batch cut over the devices of this process."""

import tessera as torch

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs


def _device_ids(device_ids):
    if device_ids is None:
        device_ids = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    return [d if isinstance(d, int) else torch.device(d).index for d in device_ids]


class DataParallel(Module):
    """Each device computes a part of the batch, in a thread, with a replica of the module.

    Gradients flow back through the replicas to the parameters, which are on the first device. What
    replicas on other devices write into their buffers is lost.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.dim = dim
        self.module = module
        self.device_ids = _device_ids(device_ids)
        count = torch.cuda.device_count() if self.device_ids else 0
        wrong = [d for d in self.device_ids if not 0 <= d < count]
        if wrong:
            raise AssertionError(
                f"Invalid device id: DataParallel was given cuda:{wrong[0]}, and there are "
                f"{count} devices"
            )
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
        inputs, kwargs = self.scatter(inputs, kwargs, self.device_ids)
        if not inputs:
            inputs, kwargs = ((),), ({},)
        if len(inputs) == 1:
            output = self.module(*inputs[0], **kwargs[0])
            if self.output_device == self.device_ids[0]:
                return output
            return self.gather([output], self.output_device)
        replicas = self.replicate(self.module, self.device_ids[: len(inputs)])
        outputs = self.parallel_apply(replicas, inputs, kwargs)
        return self.gather(outputs, self.output_device)

    def replicate(self, module, device_ids):
        return replicate(module, device_ids, not torch.is_grad_enabled())

    def scatter(self, inputs, kwargs, device_ids):
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs, output_device):
        return gather(outputs, output_device, self.dim)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """DataParallel's call as a function."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
