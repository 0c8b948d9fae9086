"""Modules as functions of their parameters."""

from .. import _C
from ..nn import Module
from ..nn.utils import stateless


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """module(*args, **kwargs) with the given tensors in the place of its parameters and buffers."""
    if isinstance(parameter_and_buffer_dicts, (list, tuple)):
        together = {}
        for given in parameter_and_buffer_dicts:
            if not isinstance(given, dict):
                raise ValueError(
                    "Expected all elements of parameter_and_buffer_dicts to be dictionaries"
                )
            twice = together.keys() & given.keys()
            if twice:
                raise ValueError(
                    f"{sorted(twice)} appeared in multiple dictionaries; behavior of functional "
                    "call is ambiguous"
                )
            together |= given
    elif isinstance(parameter_and_buffer_dicts, dict):
        together = parameter_and_buffer_dicts
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return stateless.functional_call(
        module, together, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models):
    """Parameters and buffers of modules of one kind, each stacked over the modules."""
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(per_model):
        together = {}
        for name, first in per_model[0].items():
            tensors = [one[name] for one in per_model]
            whole = _C.ops["stack"]([t.detach() for t in tensors], 0)
            together[name] = whole.requires_grad_(first.requires_grad)
        return together

    parameters = stacked([dict(m.named_parameters()) for m in models])
    buffers = stacked([dict(m.named_buffers()) for m in models])
    return parameters, buffers


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Batch normalisations of a module keep no running statistics any more; changes it in place."""
    from ..nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functionalize(func, *, remove="mutations"):
    """The function itself: it is for compilers, and computes the same."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove= {remove}"
        )
    return func


def debug_unwrap(tensor, *, recurse=True):
    """The tensor itself: transforms do not wrap tensors."""
    return tensor
