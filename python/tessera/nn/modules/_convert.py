"""Moving and converting modules: everything goes through `_apply`."""

from ... import _C

Tensor = _C.Tensor


def _no_grad():
    from ..._grad_mode import no_grad

    return no_grad()


def parse_to(args, kwargs):
    """Device, dtype, non_blocking and memory format of the forms that `to` is called in."""
    args = list(args)
    kwargs = dict(kwargs)
    device = kwargs.pop("device", None)
    dtype = kwargs.pop("dtype", None)
    other = kwargs.pop("tensor", None)
    memory_format = kwargs.pop("memory_format", None)
    kwargs.pop("copy", None)
    if args and isinstance(args[0], Tensor):
        other = args.pop(0)
    elif args and isinstance(args[0], _C.dtype):
        dtype = args.pop(0)
    elif args:
        device = args.pop(0)
        if args and (args[0] is None or isinstance(args[0], _C.dtype)):
            dtype = args.pop(0)
    if other is not None:
        device, dtype = other.device, other.dtype
    non_blocking = bool(kwargs.pop("non_blocking", args.pop(0) if args else False))
    if kwargs or len(args) > 1:
        wrong = next(iter(kwargs), None) or "too many arguments"
        raise TypeError(f"to() received an invalid combination of arguments: {wrong}")
    if device is not None and not isinstance(device, _C.device):
        device = _C.device("cuda", device) if type(device) is int else _C.device(device)
    return device, dtype, non_blocking, memory_format


class ConvertMixin:
    """The part of nn.Module that moves and converts what is in it."""

    def _apply(self, fn, recurse=True):
        """Replaces every parameter, its gradient, and every buffer by fn of it."""
        from ..parameter import Parameter

        if recurse:
            for module in self.children():
                module._apply(fn)
        for key, param in self._parameters.items():
            if param is None:
                continue
            # Without a graph; the parameter stays the object it is.
            with _no_grad():
                applied = fn(param)
            if applied is not param:
                if isinstance(param, Parameter) and isinstance(applied, Tensor):
                    param.data = applied
                else:
                    self._parameters[key] = Parameter(applied, param.requires_grad)
            grad = param.grad
            if grad is not None:
                with _no_grad():
                    grad_applied = fn(grad)
                if grad_applied is not grad:
                    self._parameters[key].grad = grad_applied.requires_grad_(grad.requires_grad)
        for key, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[key] = fn(buffer)
        return self

    def apply(self, fn):
        """Calls fn with every module below, then this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args, **kwargs):
        """to(device, dtype, non_blocking), to(dtype), to(tensor), to(memory_format=...): moves
        everything, converts what is floating point."""
        device, dtype, non_blocking, memory_format = parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )

        def convert(t):
            convertible = t.is_floating_point() or t.is_complex()
            options = {}
            if memory_format is not None and t.dim() in (4, 5):
                options["memory_format"] = memory_format
            return t.to(device, dtype if convertible else t.dtype, non_blocking, **options)

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Moves without copying: the values are whatever the memory holds."""
        import tessera as torch

        return self._apply(lambda t: torch.empty_like(t, device=device), recurse=recurse)

    def cuda(self, device=None):
        return self._apply(lambda t: t.cuda(device))

    def cpu(self):
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type):
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def share_memory(self):
        """Moves everything to memory that other processes can map."""
        return self._apply(lambda t: t.share_memory_())

    def ipu(self, device=None):
        raise NotImplementedError("Module.ipu: Tessera has the devices cpu and cuda")

    def xpu(self, device=None):
        raise NotImplementedError("Module.xpu: Tessera has the devices cpu and cuda")

    def mtia(self, device=None):
        raise NotImplementedError("Module.mtia: Tessera has the devices cpu and cuda")
