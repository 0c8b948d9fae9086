"""The old launcher's name: `python -m torch.distributed.launch`."""

import sys

from .run import main

if __name__ == "__main__":
    sys.exit(main([a for a in sys.argv[1:] if a not in ("--use_env", "--use-env")]))
