"""Every code block of tests/seeds on the GPU, for the table of docs/programs.md.

With --out the results go into a file, for `tests/seeds/table.py --merge FILE` on another machine;
without, into the table here.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "seeds"))
from table import main

if __name__ == "__main__":
    sys.exit(main(["cuda", *sys.argv[1:]]))
