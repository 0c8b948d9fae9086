"""Pruning: weights times masks of zeros and ones."""

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

import tessera as torch

from ..parameter import Parameter


class BasePruningMethod(ABC):
    """A way to choose what is pruned; as a hook it multiplies weight and mask before forward."""

    _tensor_name: str

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """A mask for t, that keeps what default_mask has pruned already."""

    def apply_mask(self, module):
        """The pruned tensor."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes a tensor of a module, once more if it is pruned already."""
        container, key = _find(module, name)
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if container is not None:
            chain = PruningContainer()
            chain._tensor_name = name
            if isinstance(container, PruningContainer):
                for done in container:
                    chain.add_pruning_method(done)
            else:
                chain.add_pruning_method(container)
            chain.add_pruning_method(method)
            del module._forward_pre_hooks[key]
            hook = chain
        else:
            hook = method
        orig = getattr(module, name)
        if importance_scores is None:
            importance_scores = orig
        elif importance_scores.shape != orig.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        if container is None:
            if not isinstance(orig, Parameter):
                raise AssertionError(f"{name} of {module} is no parameter")
            module.register_parameter(name + "_orig", orig)
            del module._parameters[name]
            default_mask = torch.ones_like(orig)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone()
        try:
            mask = hook.compute_mask(importance_scores, default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, hook.apply_mask(module))
            module.register_forward_pre_hook(hook)
        except Exception:
            if container is None:
                original = getattr(module, name + "_orig")
                module.register_parameter(name, original)
                del module._parameters[name + "_orig"]
            raise
        return hook

    def prune(self, t, default_mask=None, importance_scores=None):
        """A pruned copy of a tensor, without any module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        if default_mask is None:
            default_mask = torch.ones_like(t)
        return t * self.compute_mask(scores, default_mask)

    def remove(self, module):
        """Makes the pruned tensor a parameter, for good."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        orig = module._parameters[name + "_orig"]
        orig.data = weight.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, orig)


class PruningContainer(BasePruningMethod):
    """Several prunings of one tensor, each of what the ones before left."""

    def __init__(self, *args):
        self._pruning_methods = ()
        self._tensor_name = args[0]._tensor_name if args else None
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found "
                f"'{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            slc = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the attribute '
                    "`dim` defined."
                )
            dim = method.dim if method.dim >= 0 else method.dim + t.dim()
            others = [d for d in range(t.dim()) if d != dim]
            kept = mask.sum(dim=others) != 0
            slc = [slice(None)] * t.dim()
            slc[dim] = kept
            slc = tuple(slc)
        elif method.PRUNING_TYPE == "global":
            slc = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = mask.clone()
        mask[slc] = method.compute_mask(t[slc], default_mask=mask[slc]).to(mask.dtype)
        return mask


def _find(module, name):
    found, key = None, None
    for k, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            found, key = hook, k
    return found, key


class Identity(BasePruningMethod):
    """Prunes nothing; makes mask and hook."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask

    @classmethod
    def apply(cls, module, name):
        return super().apply(module, name)


class RandomUnstructured(BasePruningMethod):
    """Prunes elements by chance."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        size = t.nelement()
        n = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(n, size)
        mask = default_mask.clone()
        if n != 0:
            chosen = torch.topk(torch.rand_like(t).view(-1), k=n)
            mask.view(-1)[chosen.indices] = 0
        return mask

    @classmethod
    def apply(cls, module, name, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """Prunes the elements nearest to 0."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        size = t.nelement()
        n = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(n, size)
        mask = default_mask.clone()
        if n != 0:
            chosen = torch.topk(torch.abs(t).reshape(-1), k=n, largest=False)
            mask.view(-1)[chosen.indices] = 0
        return mask

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    PRUNING_TYPE = "structured"

    def _score(self, t):
        raise NotImplementedError

    def _channels_mask(self, t, default_mask, chosen):
        dim = self.dim if self.dim >= 0 else self.dim + t.dim()
        mask = torch.zeros_like(t)
        mask[(slice(None),) * dim + (chosen,)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Prunes whole channels by chance."""

    def __init__(self, amount, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t, default_mask):
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        n = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(n, size)
        if n == 0:
            return default_mask
        scores = torch.rand(size)
        kept = torch.topk(scores, k=size - n).indices.to(t.device)
        return self._channels_mask(t, default_mask, kept)

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels with the smallest norms."""

    def __init__(self, amount, n, dim=-1):
        _validate_pruning_amount_init(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t, default_mask):
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        n = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(n, size)
        if n == 0:
            return default_mask
        norm = _compute_norm(t, self.n, self.dim)
        kept = torch.topk(norm, k=size - n, largest=True).indices
        return self._channels_mask(t, default_mask, kept)

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError("the mask must have the shape of what is pruned")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        return super().apply(module, name, mask=mask)


def identity(module, name):
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes several tensors as if they were one."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores = importance_scores or {}
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    if pruning_method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {pruning_method.PRUNING_TYPE}"
        )
    relevant = [scores.get((m, n), getattr(m, n)) for m, n in parameters]
    masks = [getattr(m, n + "_mask", torch.ones_like(getattr(m, n))) for m, n in parameters]
    flat = torch.cat([t.reshape(-1) for t in relevant])
    default_mask = torch.cat([mask.reshape(-1) for mask in masks])
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    final = container.compute_mask(flat, default_mask)
    at = 0
    for module, name in parameters:
        param = getattr(module, name)
        size = param.numel()
        custom_from_mask(module, name, mask=final[at : at + size].view_as(param))
        at += size


def remove(module, name):
    """Makes a pruned tensor an ordinary parameter, with its zeros."""
    hook, key = _find(module, name)
    if hook is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module):
    """Is anything in it pruned?"""
    return any(
        isinstance(hook, BasePruningMethod)
        for m in module.modules()
        for hook in m._forward_pre_hooks.values()
    )


def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (
        not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0
    ):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _validate_pruning_amount(amount, tensor_size):
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune="
            f"{tensor_size}"
        )


def _validate_structured_pruning(t):
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t, dim):
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_nparams_toprune(amount, tensor_size):
    if isinstance(amount, numbers.Integral):
        return amount
    return round(amount * tensor_size)


def _compute_norm(t, n, dim):
    dim = dim if dim >= 0 else dim + t.dim()
    others = [d for d in range(t.dim()) if d != dim]
    return torch.norm(t, p=n, dim=others)
