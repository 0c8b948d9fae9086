"""Timing statements: repeated, with the spread of what was measured."""

from ..._missing import module_getattr
from .compare import Colorize, Compare
from .measurement import (
    Measurement,
    TaskSpec,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from .timer import Language, Timer, timer

__getattr__ = module_getattr(__name__)
