"""Parts of the loader. What workers need loads with the first of them."""

import sys

from ...._missing import module_getattr

IS_WINDOWS = sys.platform == "win32"
# How long a process waits for another before it looks whether that is still alive.
MP_STATUS_CHECK_INTERVAL = 5.0

__getattr__ = module_getattr(__name__)
