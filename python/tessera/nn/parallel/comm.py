"""Copies between the devices of this process."""

import tessera as torch

from .scatter_gather import _device
from .scatter_gather import gather as _gather
from .scatter_gather import scatter as _scatter


def broadcast(tensor, devices=None, *, out=None):
    """The tensor on each device."""
    if (devices is None) == (out is None):
        raise RuntimeError("Exactly one of 'devices' and 'out' must be specified")
    if out is not None:
        for target in out:
            target.copy_(tensor)
        return tuple(out)
    return tuple(tensor.to(_device(d), non_blocking=True) for d in devices)


def broadcast_coalesced(tensors, devices, buffer_size=10485760):
    """For each device a tuple of the tensors there."""
    return [tuple(t.to(_device(d), non_blocking=True) for t in tensors) for d in devices]


def reduce_add(inputs, destination=None):
    """The sum of tensors of several devices, on one of them."""
    device = _device(torch.cuda.current_device() if destination is None else destination)
    total = inputs[0].to(device)
    for t in inputs[1:]:
        if t.shape != inputs[0].shape:
            raise ValueError(
                f"input shapes do not match: {list(t.shape)} and {list(inputs[0].shape)}"
            )
        total = total + t.to(device, non_blocking=True)
    return total


def reduce_add_coalesced(inputs, destination=None, buffer_size=10485760):
    return tuple(reduce_add(column, destination) for column in zip(*inputs))


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """Parts of a tensor on the devices, of these sizes or as even as can be."""
    if out is not None:
        pieces = tensor.split([t.size(dim) for t in out], dim)
        for target, piece in zip(out, pieces):
            target.copy_(piece)
        return tuple(out)
    if chunk_sizes is None:
        return tuple(_scatter(tensor, devices, dim))
    pieces = tensor.split(list(chunk_sizes), dim)
    return tuple(p.to(_device(d), non_blocking=True) for p, d in zip(pieces, devices))


def gather(tensors, dim=0, destination=None, *, out=None):
    """One tensor of parts on several devices."""
    device = torch.cuda.current_device() if destination is None else destination
    whole = _gather(list(tensors), device if out is None else out.device, dim)
    return whole if out is None else out.copy_(whole)
