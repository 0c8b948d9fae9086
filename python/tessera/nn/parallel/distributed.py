"""DistributedDataParallel: a replica in each process, gradients averaged while backward runs.

The reducer (buckets, hooks, the end of backward) is C++: src/tessera/parallel.
"""

from contextlib import contextmanager

import tessera as torch

from ... import _C
from ..modules.module import Module
from .scatter_gather import _device, to_device

_MEBIBYTE = 1 << 20


def _default_group():
    from ...distributed._groups import _get_default_group

    return _get_default_group()


def _tensors(value):
    """The tensors in what forward returned."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        attributes = getattr(value, "__dict__", None)  # a dataclass, an object of outputs
        value = () if attributes is None or isinstance(value, type) else attributes.values()
    return [t for item in value for t in _tensors(item)]


class DistributedDataParallel(Module):
    """The same module in every process; each computes gradients of its part of the batch.

    Parameters and buffers start as rank 0 has them. Gradients are averaged over the processes in
    buckets that start as soon as they are full, while backward computes the rest.
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=True,
        init_sync=True,
        process_group=None,
        bucket_cap_mb=None,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        **more,
    ):
        super().__init__()
        for name, value in more.items():
            if value:
                raise NotImplementedError(
                    f"DistributedDataParallel({name}=...) is not implemented in Tessera yet"
                )
        self.process_group = _default_group() if process_group is None else process_group
        self.module = module
        named, seen = [], set()
        left_out = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        for name, p in module.named_parameters():
            if p.requires_grad and name not in left_out and id(p) not in seen:
                seen.add(id(p))
                named.append((name, p))
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient."
            )
        self.device_ids, self.output_device = self._devices(device_ids, output_device)
        self.device = next(iter(p.device for _, p in named))
        self.device_type = self.device.type
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * _MEBIBYTE)
        self.first_bucket_bytes = min(_MEBIBYTE, self.bucket_bytes_cap)
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.parameters_to_ignore = left_out
        self._named = named
        if init_sync:
            _C._check_same_everywhere(
                self.process_group,
                [f"{name} ({p.dtype}, shape {list(p.shape)})" for name, p in named],
                named[0][1],
            )
            self._broadcast(
                [p for n, p in module.named_parameters() if n not in left_out] + self._buffers_()
            )
        self._make_reducer()

    def _devices(self, device_ids, output_device):
        """device_ids: where inputs go; None: they stay where they are."""
        if not device_ids:
            if output_device is not None:
                raise ValueError("output_device can only be given together with device_ids")
            return None, None
        if len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        device = _device(device_ids[0])
        kinds = {p.device for p in self.module.parameters()}
        if device.type == "cpu" or any(kind.type == "cpu" for kind in kinds):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                f"{list(device_ids)}, output_device {output_device}, and module parameters "
                f"{kinds}. Move the module first: model.to({str(device)!r}), or leave device_ids "
                "out for a module on the CPU."
            )
        wrong = [n for n, p in self.module.named_parameters() if p.device != device]
        if wrong:
            raise ValueError(
                f"device_ids is [{device}], but parameter {wrong[0]} is on "
                f"{self.module.get_parameter(wrong[0]).device}: model.to({str(device)!r}) first."
            )
        return [device.index], device.index if output_device is None else output_device

    def _make_reducer(self):
        self.reducer = _C._make_reducer(
            [p for _, p in self._named],
            [name for name, _ in self._named],
            self.process_group,
            self.bucket_bytes_cap,
            self.first_bucket_bytes,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            self.static_graph,
        )

    def _buffers_(self):
        left_out = self.parameters_to_ignore
        return [b for name, b in self.module.named_buffers() if name not in left_out]

    def _broadcast(self, tensors):
        if tensors:
            _C._broadcast_together(self.process_group, [t.detach() for t in tensors], 0)

    # ---- a step ------------------------------------------------------------------------------

    def forward(self, *inputs, **kwargs):
        reduced = torch.is_grad_enabled() and self.require_backward_grad_sync
        if reduced:
            self.reducer.prepare_for_forward()
        if self.broadcast_buffers and self.require_forward_param_sync:
            self._broadcast(self._buffers_())
        if self.device_ids:
            device = torch.device("cuda", self.device_ids[0])
            inputs, kwargs = to_device((inputs, kwargs), device)
        output = self.module(*inputs, **kwargs)
        if reduced:
            self.require_forward_param_sync = True
            look = self.find_unused_parameters and not self.static_graph
            self.reducer.prepare_for_backward(_tensors(output) if look else ())
        else:
            self.require_forward_param_sync = False
            self.reducer.expect_nothing()
        return output

    @contextmanager
    def no_sync(self):
        """Within it gradients stay this process's own, and add up: for several parts of a batch."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(self, divide_by_initial_world_size=True, enable=True, **unused):
        """For ranks with fewer batches than others: not there."""
        raise NotImplementedError(
            "DistributedDataParallel.join() is not implemented in Tessera yet: every rank needs "
            "as many batches, as DistributedSampler gives them"
        )

    # ---- hooks -------------------------------------------------------------------------------

    def register_comm_hook(self, state, hook):
        """hook(state, bucket) takes the place of the average: it returns a future of a tensor."""
        from .comm_hooks import GradBucket

        if not callable(hook):
            raise TypeError("Communication hook must be callable.")

        def call(index, is_last, buffer, gradients, parameters):
            future = hook(state, GradBucket(index, is_last, buffer, gradients, parameters))
            if not hasattr(future, "wait"):
                raise TypeError(
                    "Communication hook: expected a torch.futures.Future, got "
                    f"{type(future).__name__}"
                )

            def result():
                value = future.wait()
                return value[0] if isinstance(value, (tuple, list)) else value

            return result

        self.reducer.set_comm_hook(call)

    def _set_static_graph(self):
        self.static_graph = True
        self._make_reducer()

    # ---- copies ------------------------------------------------------------------------------

    def train(self, mode=True):
        super().train(mode)
        return self

    def __getstate__(self):
        state = self.__dict__.copy()
        for name in ("process_group", "reducer"):
            state.pop(name, None)
        return state

    def __setstate__(self, state):
        """In the default group: process groups are not saved."""
        super().__setstate__(state)
        self.__dict__.setdefault("require_forward_param_sync", True)
        self.__dict__.setdefault("require_backward_grad_sync", True)
        self.process_group = _default_group()
        names = {name for name, _ in self._named}
        self._named = [(n, p) for n, p in self.module.named_parameters() if n in names]
        self._make_reducer()
