"""Runs the command `tessera` as `python FOLDER args...`, for processes that Tessera starts.

`python -m tessera` begins sys.path with the current directory and would import its files; here
sys.path begins with this folder, which holds nothing else, until `run` puts the program's there.
"""

import os
import sys

_parent = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if _parent not in sys.path:
    sys.path.append(_parent)

from tessera.__main__ import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
