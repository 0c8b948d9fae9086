"""Prints the packages of an extra of pyproject.toml, and those with the headers for building.

python tools/dev/cuda_packages.py cuda|cuda12
"""

import re
import sys
from pathlib import Path

HEADERS = {"cuda": "runtime crt cccl cupti", "cuda12": "runtime nvcc cccl cupti"}
VERSION = {"cuda": ">=13", "cuda12": "-cu12"}


def main(extra: str) -> None:
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    (listed,) = re.findall(
        rf"^{extra} = \[(.*?)^\]", text, re.S | re.M
    )  # tomllib is of Python 3.11
    headers = [f"nvidia-cuda-{name}{VERSION[extra]}" for name in HEADERS[extra].split()]
    print(*re.findall(r'"([^"]+)"', listed), *headers, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1])
