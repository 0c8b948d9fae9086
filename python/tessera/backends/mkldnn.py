"""oneDNN: is it used, and how."""

from .._missing import module_getattr
from ._switch import flags_of

enabled = True
deterministic = False
allow_tf32 = False
fp32_precision = "none"
VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2

set_flags, flags = flags_of(__name__, ("enabled", "deterministic", "allow_tf32", "fp32_precision"))


def is_available():
    return False


__getattr__ = module_getattr(__name__)
