"""Where PyTorch keeps what torch.distributed offers, and some names that it does not."""

from .._missing import module_getattr
from . import _collectives, _groups, _objects, _stores, constants

_missing = module_getattr(__name__)


def __getattr__(name):
    for module in (_groups, _collectives, _objects, _stores, constants):
        if name in vars(module):
            return vars(module)[name]
    return _missing(name)
