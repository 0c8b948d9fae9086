"""Logs that TensorBoard shows. Writing them needs no package; looking at them needs TensorBoard."""

from ..._missing import module_getattr
from .event_file import FileWriter
from .writer import SummaryWriter

__getattr__ = module_getattr(__name__)
