"""What Tensor has beside its operators and what the binder gives it: methods written in Python."""

from . import _C
from ._utils import (
    _get_obj_state,
    _rebuild_from_type_v2,
    _rebuild_meta_tensor_no_storage,
    _rebuild_tensor_v2,
)

Tensor = _C.Tensor


class DisableTorchFunctionSubclass:
    """Within it, no argument's __torch_function__ is asked."""

    def __enter__(self):
        self._before = _C._set_torch_function_disabled(True)

    def __exit__(self, *unused):
        _C._set_torch_function_disabled(self._before)


_C.DisableTorchFunctionSubclass = DisableTorchFunctionSubclass


def _as_class(result, cls):
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if type(result) in (tuple, list):
        return type(result)(_as_class(item, cls) for item in result)
    return result


def _torch_function(cls, func, types, args=(), kwargs=None):
    """The default: runs the function, and gives its results the class of the arguments."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return _as_class(result, cls)


def _repr(self, *, tensor_contents=None):
    from ._tensor_str import tensor_str

    if type(self) is not Tensor and _C._has_torch_function(self):
        from .overrides import handle_torch_function

        return handle_torch_function(
            Tensor.__repr__, (self,), self, tensor_contents=tensor_contents
        )
    with DisableTorchFunctionSubclass():
        return tensor_str(self, tensor_contents)


def _format(self, spec):
    if self.dim() == 0:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


def _deepcopy(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    from copy import deepcopy

    from ._grad_mode import no_grad
    from ._utils import _rebuild_tensor

    with DisableTorchFunctionSubclass(), no_grad():
        # Tensors that share memory go on sharing it: the storage is what is copied.
        storage = self._typed_storage().__deepcopy__(memo)
        made = _rebuild_tensor(storage, self.storage_offset(), self.shape, self.stride())
        if type(self) is not Tensor:
            made = _C._make_subclass(type(self), made, self.requires_grad)
        elif self.requires_grad:
            made.requires_grad_()
        memo[id(self)] = made
        if self.grad is not None:
            made.grad = deepcopy(self.grad, memo)
    _copy_attributes(self, made, memo)
    return made


def _copy_attributes(tensor, made, memo):
    from copy import deepcopy

    from ._utils import _get_obj_state, _set_obj_state

    if type(tensor) is Tensor:
        state = tensor.__dict__
    elif "__getstate__" in vars(type(tensor)):  # of what it pickles, not of what it has
        state = tensor.__dict__
    else:
        state = _get_obj_state(tensor)
    if state:
        _set_obj_state(made, deepcopy(state, memo))


def _reduce_ex(self, protocol):
    from collections import OrderedDict

    with DisableTorchFunctionSubclass():
        if self.is_meta and type(self) is Tensor:
            return _rebuild_meta_tensor_no_storage, (
                self.dtype,
                tuple(self.shape),
                self.stride(),
                self.requires_grad,
            )
        args = (
            self._typed_storage(),
            self.storage_offset(),
            tuple(self.shape),
            self.stride(),
            self.requires_grad,
            OrderedDict(),
        )
    state = _get_obj_state(self)
    if type(self) is Tensor and not state:
        return _rebuild_tensor_v2, args
    return _rebuild_from_type_v2, (_rebuild_tensor_v2, type(self), args, state)


Tensor.__module__ = "tessera"
Tensor.__torch_function__ = classmethod(_torch_function)
Tensor.__repr__ = _repr
Tensor.__format__ = _format
Tensor.__deepcopy__ = _deepcopy
Tensor.__reduce_ex__ = _reduce_ex
Tensor.__array_priority__ = 1000  # NumPy's operators leave mixed calls to us
Tensor._make_subclass = staticmethod(_C._make_subclass)


def _where(self, condition, other):
    return _C.ops["where"](condition, self, other)


Tensor.where = _where
Tensor.__div__ = Tensor.__truediv__
Tensor.__rdiv__ = Tensor.__rtruediv__
Tensor.__idiv__ = Tensor.__itruediv__
Tensor.__nonzero__ = Tensor.__bool__
