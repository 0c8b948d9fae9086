"""opt_einsum: the order of einsum's contractions."""

from .._missing import module_getattr
from ._switch import flags_of

enabled = False
strategy = None

set_flags, flags = flags_of(__name__, ("enabled", "strategy"))


def is_available():
    return False


def get_opt_einsum():
    return None


__getattr__ = module_getattr(__name__)
