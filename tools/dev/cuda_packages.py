"""Prints the packages of an extra of pyproject.toml, and those with the headers for building.

python tools/dev/cuda_packages.py cuda|cuda12
"""

import re
import sys
from pathlib import Path

HEADERS = {"cuda": "runtime crt cccl", "cuda12": "runtime nvcc cccl"}
VERSION = {"cuda": ">=13", "cuda12": "-cu12"}


def main(extra: str) -> None:
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    # Not by tomllib, which Python 3.10 lacks.
    (listed,) = re.findall(rf"^{extra} = \[(.*?)^\]", text, re.S | re.M)
    headers = [f"nvidia-cuda-{name}{VERSION[extra]}" for name in HEADERS[extra].split()]
    print(*re.findall(r'"([^"]+)"', listed), *headers, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1])
