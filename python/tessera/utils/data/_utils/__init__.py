"""Parts of the loader."""

import sys

from . import collate, fetch, pin_memory, worker

IS_WINDOWS = sys.platform == "win32"
# How long a process waits for another before it looks whether that is still alive.
MP_STATUS_CHECK_INTERVAL = 5.0
