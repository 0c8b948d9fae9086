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
_profiler_enabled = _C._is_profiling


class _Engine:
    """Variable._execution_engine: what libraries of PyTorch's reach for."""

    @staticmethod
    def queue_callback(callback):
        """From a hook: callback() when the backward that is under way is through."""
        _C._at_end_of_backward(callback)


Variable._execution_engine = _Engine()


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
    inputs = (inputs,) if isinstance(inputs, _C.Tensor) else tuple(inputs)
    if is_grads_batched:
        return _batched_grad(
            outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads
        )
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


def _batched_grad(outputs, inputs, grad_outputs, create_graph, allow_unused, materialize_grads):
    """The gradients for each element of a batch of grad_outputs, stacked."""
    batches = (grad_outputs,) if isinstance(grad_outputs, _C.Tensor) else tuple(grad_outputs)
    sizes = {len(g) for g in batches if g is not None}
    if len(sizes) != 1:
        raise ValueError(
            "grad(is_grads_batched=True): grad_outputs have to have the same size in their first "
            f"dimension, got {sorted(sizes)}"
        )
    rows = [
        grad(
            outputs,
            inputs,
            [None if g is None else g[i] for g in batches],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )
        for i in range(sizes.pop())
    ]
    stack = _C.ops["stack"]
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows))


class set_multithreading_enabled:
    """Accepted as a context and a call: backward runs in the thread that calls it."""

    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        pass


__getattr__ = module_getattr(
    __name__, {"DeviceType": "profiler_util", "kineto_available": "profiler"}
)
