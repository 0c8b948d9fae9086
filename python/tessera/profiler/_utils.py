"""What programs take from torch.profiler._utils."""

from .._missing import module_getattr


def _init_for_cuda_graphs():
    """Sets profiling up before a graph is captured."""
    from . import profile

    with profile():
        pass


__getattr__ = module_getattr(__name__)
