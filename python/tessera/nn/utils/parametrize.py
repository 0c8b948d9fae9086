"""Parameters computed from others: a weight becomes f(module.parametrizations.weight.original).

The module's class is replaced by one of its own, in which the parametrized tensors are properties.
"""

import collections
import contextlib
from copy import deepcopy

import tessera as torch

from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

_cache_enabled = 0
_cache = {}


@contextlib.contextmanager
def cached():
    """Within it, each parametrized tensor is computed once."""
    global _cache, _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache = {}


def _register_parameter_or_buffer(module, name, value):
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _maybe_set(dest, src):
    """dest.set_(src), also where that is only a change of data."""
    if dest is not src:
        dest.data = src.data


def _same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what they start from."""

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        original_shape, original_dtype = original.shape, original.dtype
        with torch.no_grad():
            new = original
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    continue
                try:
                    new = module.right_inverse(new)
                except NotImplementedError as error:
                    if isinstance(error, AttributeError):  # an operator that is missing
                        raise
        if not isinstance(new, torch.Tensor) and not isinstance(new, collections.abc.Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, torch.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\n"
                    f"right_inverse(original).dtype: {new.dtype}"
                )
            # The object stays: optimizers and others may hold it.
            with torch.no_grad():
                _maybe_set(original, new)
            _register_parameter_or_buffer(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, torch.Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                        f"tuple...). Got element {i} of the sequence with type "
                        f"{type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register_parameter_or_buffer(self, f"original{i}", part)
        if unsafe:
            return
        Z = self()
        if not isinstance(Z, torch.Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(Z).__name__}.")
        if Z.dtype != original_dtype:
            raise ValueError(
                "Registering a parametrization may not change the dtype of the tensor, unless "
                f"`unsafe` flag is enabled.\nunparametrized dtype: {original_dtype}\n"
                f"parametrized dtype: {Z.dtype}"
            )
        if Z.shape != original_shape:
            raise ValueError(
                "Registering a parametrization may not change the shape of the tensor, unless "
                f"`unsafe` flag is enabled.\nunparametrized shape: {original_shape}\n"
                f"parametrized shape: {Z.shape}"
            )

    def right_inverse(self, value):
        """Sets what the parametrizations start from so that they give this value."""
        with torch.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, torch.Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(value).__name__}"
                    )
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        "The tensor returned by `right_inverse` has dtype "
                        f"{value.dtype} while `original` has dtype {self.original.dtype}"
                    )
                _maybe_set(self.original, value)
                return
            if not isinstance(value, collections.abc.Sequence):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors. Got "
                    f"{type(value).__name__}."
                )
            if len(value) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(value)}."
                )
            for i, part in enumerate(value):
                original = getattr(self, f"original{i}")
                if not isinstance(part, torch.Tensor):
                    raise ValueError(
                        "`right_inverse` must return a sequence of tensors. Got element "
                        f"{i} of type {type(part).__name__}"
                    )
                if original.dtype != part.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while "
                        f"`original{i}` has dtype {original.dtype}"
                    )
                _maybe_set(original, part)

    def forward(self):
        if self.is_tensor:
            value = self[0](self.original)
        else:
            value = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for i in range(1, len(self)):
            value = self[i](value)
        return value


def _inject_new_class(module):
    """Gives the module a class of its own, by which properties can be added to it alone."""
    cls = type(module)

    def default_deepcopy(self, memo):
        found = memo.get(id(self))
        if found is not None:
            return found
        # A class of its own: what is removed from one is not from the other.
        own = type(self)
        names = {k: v for k, v in vars(own).items() if k not in ("__dict__", "__weakref__")}
        made = type(own.__name__, own.__bases__, names)
        replica = made.__new__(made)
        memo[id(self)] = replica
        replica.__dict__ = deepcopy(self.__dict__, memo)
        return replica

    def getstate(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). "
            "See:\nhttps://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    names = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        names["__deepcopy__"] = default_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), names)


def _inject_property(module, tensor_name):
    """Makes the tensor a property that is computed from its parametrizations."""
    if hasattr(module, tensor_name):
        raise AssertionError(f"{tensor_name} is still an attribute of {module}")

    def compute(self):
        key = (id(self), tensor_name)
        found = _cache.get(key) if _cache_enabled else None
        if found is None:
            try:
                found = self.parametrizations[tensor_name]()
            except AttributeError as error:
                # As it is, Python would look for the tensor elsewhere, and not find it.
                raise RuntimeError(
                    f"the parametrization of '{tensor_name}' failed: {error}"
                ) from error
            if _cache_enabled:
                _cache[key] = found
        return found

    def assign(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(compute, assign))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Computes a parameter or buffer by this module from now on; further ones are put after it."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            Y = getattr(module, tensor_name)
            X = parametrization(Y)
            if not isinstance(X, torch.Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(X).__name__}.")
            if not _same(X, Y):
                raise ValueError(
                    "Registering a parametrization may not change the dtype or the shape of the "
                    f"tensor, unless the `unsafe` flag is enabled.\n{tensor_name}: {Y.dtype}, "
                    f"{Y.shape}\nparametrization({tensor_name}): {X.dtype}, {X.shape}"
                )
            if hasattr(parametrization, "right_inverse"):
                try:
                    Z = parametrization.right_inverse(X)
                except NotImplementedError:
                    pass
                else:
                    if not isinstance(Z, torch.Tensor):
                        raise ValueError(
                            "parametrization.right_inverse must return a tensor. Got: "
                            f"{type(Z).__name__}"
                        )
                    if not _same(Z, Y):
                        raise ValueError(
                            "The tensor returned by parametrization.right_inverse must have the "
                            f"same dtype and shape as {tensor_name}, unless the `unsafe` flag is "
                            "enabled."
                        )
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        # First, so that an error leaves the module as it is.
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def is_parametrized(module, tensor_name=None):
    """Has it a parametrization, or has this tensor one?"""
    parametrizations = getattr(module, "parametrizations", None)
    if parametrizations is None or not isinstance(parametrizations, ModuleDict):
        return False
    if tensor_name is None:
        return len(parametrizations) > 0
    return tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes the tensor an ordinary one again: with its computed value, or the original one."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with torch.no_grad():
                _maybe_set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The module's class as it was written."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Parametrizes one module as another is, and shares what it starts from."""
    if not is_parametrized(from_module):
        return to_module
    names = [tensor_name] if tensor_name is not None else list(from_module.parametrizations)
    for name in names:
        if name not in from_module.parametrizations:
            continue
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            _register_parameter_or_buffer(to_module, name, source.original)
        if not is_parametrized(to_module, name):
            for parametrization in source:
                register_parametrization(to_module, name, parametrization, unsafe=source.unsafe)
        target = to_module.parametrizations[name]
        if source.is_tensor:
            target.original = source.original
        else:
            for i in range(source.ntensors):
                setattr(target, f"original{i}", getattr(source, f"original{i}"))
    return to_module
