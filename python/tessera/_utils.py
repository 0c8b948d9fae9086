"""What pickles of tensors name: PyTorch's functions that put tensors together again."""

from . import _C
from ._missing import module_getattr

Tensor = _C.Tensor


def _rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor over a TypedStorage."""
    untyped = storage._untyped_storage
    return _C._over_storage(untyped._bytes, storage.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None
):
    made = _rebuild_tensor(storage, storage_offset, size, stride)
    made.requires_grad = requires_grad
    if backward_hooks:
        made._backward_hooks = backward_hooks
    return made


def _rebuild_from_type_v2(function, new_type, args, state):
    """A tensor of a subclass, or with attributes."""
    made = function(*args)
    if type(made) is not new_type:
        made = _C._make_subclass(new_type, made, made.requires_grad)
    if getattr(new_type, "__setstate__", None) is not getattr(Tensor, "__setstate__", None):
        made.__setstate__(state)
        return made
    return _set_obj_state(made, state)


_rebuild_from_type_v2.__module__ = "tessera._tensor"  # where PyTorch has it, and files name it


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    return _C.ops["empty_strided"](
        size, stride, dtype=dtype, device="meta", requires_grad=requires_grad
    )


def _get_obj_state(obj):
    """Attributes in __dict__ and in slots, as pickle has them."""
    getstate = getattr(type(obj), "__getstate__", None)
    if getstate is not None and getstate is not getattr(object, "__getstate__", None):
        return obj.__getstate__()
    import copyreg

    slots = {
        name: getattr(obj, name)
        for name in copyreg._slotnames(type(obj)) or ()
        if hasattr(obj, name)
    }
    return (obj.__dict__, slots) if slots else obj.__dict__


def _set_obj_state(obj, state):
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if isinstance(state, tuple) and len(state) != 2:
        raise RuntimeError(f"Invalid serialized state: {state}")
    for part in (attributes, slots):
        for name, value in (part or {}).items():
            setattr(obj, name, value)
    return obj


def _rebuild_parameter(data, requires_grad, backward_hooks):
    from .nn import parameter

    return parameter._rebuild_parameter(data, requires_grad, backward_hooks)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    from .nn import parameter

    return parameter._rebuild_parameter_with_state(data, requires_grad, backward_hooks, state)


__getattr__ = module_getattr(__name__)
