"""Gradients: backward, grad, and the modes."""

from .. import _C
from .._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .._missing import module_getattr
from . import graph
from .anomaly_mode import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from .function import Function
from .gradcheck import gradcheck, gradgradcheck

Variable = _C.Tensor


def backward(
    tensors,
    grad_tensors=None,
    retain_graph=None,
    create_graph=False,
    grad_variables=None,
    inputs=None,
):
    """Adds the gradients of the sum of tensors to the leaves they came from."""
    if grad_variables is not None:
        grad_tensors = grad_variables
    _C._run_backward(tensors, grad_tensors, retain_graph, create_graph, inputs)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """The gradients of the sum of outputs with respect to inputs."""
    if is_grads_batched:
        raise NotImplementedError("grad(is_grads_batched=True) is not implemented in Tessera yet")
    inputs = (inputs,) if isinstance(inputs, _C.Tensor) else tuple(inputs)
    found = _C._grad(
        outputs,
        inputs,
        grad_outputs,
        retain_graph,
        create_graph,
        bool(allow_unused) or materialize_grads,
    )
    if materialize_grads:
        zeros = _C.ops["zeros_like"]
        found = tuple(zeros(x) if g is None else g for g, x in zip(found, inputs))
    return found


__getattr__ = module_getattr(__name__)
