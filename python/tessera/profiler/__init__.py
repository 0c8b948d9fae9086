"""torch.profiler: what a program did, how long it took, and on which line that was asked for."""

from .. import _C
from .._missing import module_getattr
from ..autograd.profiler import kineto_available, record_function
from ..autograd.profiler_util import DeviceType
from ._schedule import ProfilerAction, schedule
from .profiler import ProfilerActivity, profile, supported_activities, tensorboard_trace_handler

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def _is_profiling():
    return _C._is_profiling()


__getattr__ = module_getattr(__name__)
