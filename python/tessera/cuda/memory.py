"""Device memory, where PyTorch keeps its functions."""

from .._missing import module_getattr
from ._memory import *  # noqa: F403
from ._snapshot import (  # noqa: F401
    _dump_snapshot,
    _record_memory_history,
    _snapshot,
    memory_snapshot,
)

__getattr__ = module_getattr(__name__)
