"""torch.cuda.FloatTensor and its kin."""

from .. import _C
from .._legacy import CUDA

globals().update(CUDA)


def __getattr__(name):
    if name != "default_generators":
        raise AttributeError(name)
    return tuple(_C._default_generator(f"cuda:{i}") for i in range(_C._cuda_device_count()))
