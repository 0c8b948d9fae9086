"""The nodes of graphs: hooks, what is saved, and which graphs are alive."""

from .. import _C
from .._C import Node as Node
from .._missing import module_getattr


def _node_hook(self, hook):
    """Calls hook(grad_inputs, grad_outputs) after the node has run."""
    return _C._node_hook(self, hook, False)


def _node_prehook(self, hook):
    """Calls hook(grad_outputs) before the node runs."""
    return _C._node_hook(self, hook, True)


Node.register_hook = _node_hook
Node.register_prehook = _node_prehook


class saved_tensors_hooks:
    """Within it, pack(tensor) is kept for backward in the tensor's place; unpack gives it back."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        _C._push_saved_hooks(self.pack_hook, self.unpack_hook)
        return self

    def __exit__(self, *unused):
        _C._pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Within it, what is saved for backward waits in host memory; in pinned memory, if told so."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(tensor):
            if not pin_memory or not tensor.is_cuda:
                return tensor.device, tensor.cpu()
            waiting = tensor.new_empty(tensor.shape, device="cpu", pin_memory=True)
            return tensor.device, waiting.copy_(tensor)

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


class track_graphs:
    """Within it, new nodes are listed by live_graphs() for as long as they live."""

    def __enter__(self):
        _C._track_graphs(True)
        return self

    def __exit__(self, *unused):
        _C._track_graphs(False)


def live_graphs():
    """What is alive of the graphs made while tracked: (operator, line, nodes, saved bytes), the
    most bytes first. A list of losses that keeps its graphs shows here with the line it came from.
    """
    return _C._live_graphs()


def get_gradient_edge(tensor):
    """Where a tensor's gradient goes."""
    from typing import NamedTuple

    class GradientEdge(NamedTuple):
        node: object
        output_nr: int

    return GradientEdge(tensor.grad_fn, tensor.output_nr)


__getattr__ = module_getattr(__name__)
