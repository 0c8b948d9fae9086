"""Parts of a batch for several devices, and the batch from its parts."""

import warnings

import tessera as torch


def _device(device):
    """0, "cuda:0" or a device; -1 is the CPU."""
    if isinstance(device, int):
        return torch.device("cpu") if device == -1 else torch.device("cuda", device)
    return torch.device(device)


def _map(value, one):
    """Containers rebuilt with every leaf replaced."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map(v, one) for v in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_map(v, one) for v in value)
    if isinstance(value, dict):
        return type(value)((k, _map(v, one)) for k, v in value.items())
    return one(value)


def to_device(value, device):
    """Tensors in nested containers on one device; all else as it is."""
    return _map(value, lambda v: v.to(device) if isinstance(v, torch.Tensor) else v)


def _sizes(count, parts):
    """As many for each as can be: they differ by one at most; none is empty unless all is."""
    parts = max(1, min(parts, count))
    least, more = divmod(count, parts)
    return [least + 1] * more + [least] * (parts - more)


def scatter(inputs, target_gpus, dim=0):
    """A list of inputs, one for each device: tensors are cut along dim, all else is repeated.

    Parts differ by one row at most; where there are fewer rows than devices, fewer are used.
    """
    devices = [_device(d) for d in target_gpus]

    def parts(value):
        if isinstance(value, torch.Tensor):
            pieces = value.split(_sizes(value.size(dim), len(devices)), dim)
            return [p.to(d, non_blocking=True) for p, d in zip(pieces, devices)]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [type(value)(*items) for items in zip(*map(parts, value))]
        if isinstance(value, (tuple, list)) and len(value) > 0:
            return [type(value)(items) for items in zip(*map(parts, value))]
        if isinstance(value, dict) and len(value) > 0:
            columns = [parts(v) for v in value.values()]
            return [type(value)(zip(value, items)) for items in zip(*columns)]
        return [value for _ in devices]

    return parts(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """Positional and named inputs, as many of each."""
    inputs = scatter(inputs, target_gpus, dim) if inputs else []
    kwargs = scatter(kwargs, target_gpus, dim) if kwargs else []
    inputs.extend(() for _ in range(len(kwargs) - len(inputs)))
    kwargs.extend({} for _ in range(len(inputs) - len(kwargs)))
    return tuple(inputs), tuple(kwargs)


class Gather(torch.autograd.Function):
    """Each part is copied to its place in one result: no second copy of them on that device."""

    @staticmethod
    def forward(ctx, device, dim, *parts):
        ctx.devices = [p.device for p in parts]
        ctx.sizes = [p.size(dim) for p in parts]
        ctx.dim = dim
        shape = list(parts[0].shape)
        shape[dim] = sum(ctx.sizes)
        whole = torch.empty(shape, dtype=parts[0].dtype, device=device)
        for place, part in zip(whole.split(ctx.sizes, dim), parts):
            place.copy_(part, non_blocking=True)
        return whole

    @staticmethod
    def backward(ctx, grad):
        pieces = grad.split(ctx.sizes, ctx.dim)
        return None, None, *(p.to(d, non_blocking=True) for p, d in zip(pieces, ctx.devices))


def _gather_tensors(outputs, device, dim):
    if all(t.dim() == 0 for t in outputs) and dim == 0:
        warnings.warn(
            "Was asked to gather along dimension 0, but all input tensors were scalars; will "
            "instead unsqueeze and return a vector.",
            stacklevel=4,
        )
        outputs = [t.unsqueeze(0) for t in outputs]
    first = outputs[0]
    dim = dim + first.dim() if dim < 0 else dim
    rest = {(t.dtype, t.dim(), *(s for d, s in enumerate(t.shape) if d != dim)) for t in outputs}
    if len(rest) > 1:
        raise RuntimeError(
            "gather got outputs that do not fit together: "
            + ", ".join(f"{list(t.shape)} {t.dtype} on {t.device}" for t in outputs)
        )
    return Gather.apply(device, dim, *outputs)


def gather(outputs, target_device, dim=0):
    """One output from those of several devices, on the target device (-1: the CPU)."""
    device = _device(target_device)

    def join(outputs):
        first = outputs[0]
        if isinstance(first, torch.Tensor):
            return _gather_tensors(outputs, device, dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if not all(len(first) == len(out) for out in outputs):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((k, join([o[k] for o in outputs])) for k in first)
        if isinstance(first, tuple) and hasattr(first, "_fields"):
            return type(first)(*(join(items) for items in zip(*outputs)))
        if isinstance(first, (tuple, list)):
            return type(first)(join(items) for items in zip(*outputs))
        raise TypeError(f"DataParallel cannot gather outputs of type {type(first).__name__}")

    return join(outputs)
