"""Streams and events, where PyTorch keeps them."""

from .._missing import module_getattr
from ._streams import Event as Event
from ._streams import ExternalStream as ExternalStream
from ._streams import Stream as Stream

__getattr__ = module_getattr(__name__)
