"""Parts of a batch for several devices, and the batch from its parts."""

import tessera as torch


def scatter(inputs, target_gpus, dim=0):
    """A list of inputs, one for each device: tensors are cut along dim, all else is repeated."""

    def parts(value):
        if isinstance(value, torch.Tensor):
            pieces = value.chunk(len(target_gpus), dim)
            return [p.to(_device(d)) for p, d in zip(pieces, target_gpus)]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [type(value)(*items) for items in zip(*map(parts, value))]
        if isinstance(value, (tuple, list)) and len(value) > 0:
            return [type(value)(items) for items in zip(*map(parts, value))]
        if isinstance(value, dict) and len(value) > 0:
            columns = [parts(v) for v in value.values()]
            return [type(value)(zip(value, items)) for items in zip(*columns)]
        return [value for _ in target_gpus]

    return parts(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """Positional and named inputs, as many of each."""
    inputs = scatter(inputs, target_gpus, dim) if inputs else []
    kwargs = scatter(kwargs, target_gpus, dim) if kwargs else []
    inputs.extend(() for _ in range(len(kwargs) - len(inputs)))
    kwargs.extend({} for _ in range(len(inputs) - len(kwargs)))
    return tuple(inputs), tuple(kwargs)


def gather(outputs, target_device, dim=0):
    """One output from those of several devices."""
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        device = _device(target_device)
        if all(t.dim() == 0 for t in outputs) and dim == 0:
            import warnings

            warnings.warn(
                "Was asked to gather along dimension 0, but all input tensors were scalars; will "
                "instead unsqueeze and return a vector.",
                stacklevel=3,
            )
            outputs = [t.unsqueeze(0) for t in outputs]
        return torch.cat([t.to(device) for t in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(out) for out in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((k, gather([o[k] for o in outputs], target_device, dim)) for k in first)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(gather(items, target_device, dim) for items in zip(*outputs)))
    if isinstance(first, (tuple, list)):
        return type(first)(gather(items, target_device, dim) for items in zip(*outputs))
    raise TypeError(f"DataParallel cannot gather outputs of type {type(first).__name__}")


def _device(device):
    if isinstance(device, int):
        return torch.device("cpu") if device == -1 else torch.device("cuda", device)
    return torch.device(device)
