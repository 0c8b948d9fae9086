"""DLPack: memory shared with other libraries."""

from enum import IntEnum

from .._interchange import from_dlpack as from_dlpack
from .._missing import module_getattr


class DLDeviceType(IntEnum):
    """Where memory lies, as DLPack numbers it."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
    kDLTrn = 18


def to_dlpack(tensor):
    """A capsule over a tensor's memory, to be taken over once."""
    return tensor.__dlpack__()


__getattr__ = module_getattr(__name__)
