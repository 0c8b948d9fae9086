"""Records the losses PyTorch prints for each program here: python3 tests/training/record.py.

Run it with an interpreter that has PyTorch.
"""

import json
import subprocess
import sys
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
PROGRAMS = sorted(path.stem for path in HERE.glob("*_*.py"))
DTYPES = ("float64", "float32")


def losses(name, dtype):
    command = [sys.executable, HERE / f"{name}.py", dtype]
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    return [float(line) for line in out.splitlines()]


def main():
    assert "tessera" not in torch.__file__, "this records PyTorch"
    recorded = {"torch": torch.__version__.split("+")[0]}
    for name in PROGRAMS:
        recorded[name] = {dtype: losses(name, dtype) for dtype in DTYPES}
        first, last = recorded[name]["float64"][0], recorded[name]["float64"][-1]
        print(f"{name}: {first:.4f} -> {last:.4f}")
    (HERE / "losses.json").write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()
