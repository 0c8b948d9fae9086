"""Small helpers for looking at what a program does. Not in PyTorch: its users write them."""

from ..._missing import module_getattr
from ._graphs import GraphLeakFinder, find_graph_leaks, graph_holders
from ._memory import ActivationMemory, GPUMemoryTracker, activation_memory, log_memory
from ._tensors import print_tensor_info, tensor_info, verify_model_device

__all__ = [
    "ActivationMemory",
    "GPUMemoryTracker",
    "GraphLeakFinder",
    "activation_memory",
    "find_graph_leaks",
    "graph_holders",
    "log_memory",
    "print_tensor_info",
    "tensor_info",
    "verify_model_device",
]

__getattr__ = module_getattr(__name__)
