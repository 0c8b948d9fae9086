"""Records what PyTorch prints for each program here, on the CPU: python3 tests/seeds/record.py.

Run it with an interpreter that has PyTorch and, to be comparable, no GPU.
"""

import os
import subprocess
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent


def main():
    assert "tessera" not in torch.__file__, "this records PyTorch"
    (HERE / "expected").mkdir(exist_ok=True)
    for program in sorted(HERE.glob("[0-9]*.py")):
        done = subprocess.run(
            [sys.executable, HERE / "seeded.py", program],
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        head = f"# PyTorch {torch.__version__.split('+')[0]}, CPU, seed 0\n"
        (HERE / "expected" / f"{program.stem}.txt").write_text(head + done.stdout)
        print(f"{program.stem}: {len(done.stdout.splitlines())} lines")


if __name__ == "__main__":
    main()
