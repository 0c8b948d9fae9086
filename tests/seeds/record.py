"""Records what PyTorch prints for blocks where there is no GPU: python3 record.py [BLOCK...]

Run it with an interpreter that has PyTorch. Where PyTorch asks for a GPU, the line says <no gpu>.
"""

import os
import re
import subprocess
import sys
import tempfile

import torch
from blocks import HERE, all_blocks

OURS = {"004_11_distributed", "004_23_challenge"}  # it words, or has, these otherwise
NO_DRIVER = re.compile(r"(\w+Error: ).*Found no NVIDIA driver on your system.*")


def main():
    assert "tessera" not in torch.__file__, "this records PyTorch"
    asked = set(sys.argv[1:])
    folder = HERE / "expected" / "cpu"
    for block in all_blocks():
        if block.file.endswith(".sh") or block.name in OURS or (asked and block.name not in asked):
            continue
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run(
                [sys.executable, HERE / "frame.py", block.file],
                env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
                cwd=place,
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            )
        head = f"# PyTorch {torch.__version__.split('+')[0]}, CPU, seed 0\n"
        text = NO_DRIVER.sub(r"\1<no gpu>", done.stdout)
        (folder / f"{block.name}.txt").write_text(head + text)
        print(f"{block.name}: {len(text.splitlines())} lines")


if __name__ == "__main__":
    main()
