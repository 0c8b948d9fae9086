"""autocast, and what functions with gradients of their own need to live within it."""

import functools

import tessera as torch

from ..utils._pytree import tree_map
from . import autocast as autocast
from . import is_autocast_available as is_autocast_available


def _cast(value, device_type, dtype):
    """Floating point tensors on the device, in another dtype; everything else as it is."""

    def one(leaf):
        if not isinstance(leaf, torch.Tensor) or leaf.device.type != device_type:
            return leaf
        return leaf.to(dtype) if leaf.is_floating_point() and leaf.dtype != torch.float64 else leaf

    return tree_map(one, value)


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """For the forward of an autograd.Function: as it is under autocast, or in one precision."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx, *args, **kwargs):
        on = torch.is_autocast_enabled(device_type)
        ctx._dtype = torch.get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                ctx,
                *_cast(args, device_type, cast_inputs),
                **_cast(kwargs, device_type, cast_inputs),
            )

    return forward


def custom_bwd(bwd=None, *, device_type):
    """For the backward of an autograd.Function: with autocast as the forward had it."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx, *args, **kwargs):
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return backward
