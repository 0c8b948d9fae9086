#!/usr/bin/env python3
"""PyTorch and Tessera read each other's files, bit for bit; for a machine that has both.

    save_crosscheck.py write FOLDER [--module tessera]    every case as FOLDER/NAME.pt
    save_crosscheck.py read FOLDER [--module tessera]     reads them, and compares with its own
    save_crosscheck.py both TORCH_PYTHON                  both ways; TORCH_PYTHON runs PyTorch

With PyTorch in another folder, TORCH_PYTHON is a command: "env PYTHONPATH=folder python3".
"""

import argparse
import importlib
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import save_cases


def write(torch, folder):
    folder.mkdir(exist_ok=True)
    for name, value in save_cases.cases(torch).items():
        torch.save(value, folder / f"{name}.pt")
        torch.save(value, folder / f"{name}.legacy", _use_new_zipfile_serialization=False)


def read(torch, folder):
    wrong = count = 0
    for name, value in save_cases.cases(torch).items():
        for suffix in ("pt", "legacy"):
            found = torch.load(folder / f"{name}.{suffix}")
            problem = save_cases.difference(torch, value, found, name)
            count += 1
            wrong += problem is not None
            if problem:
                print(f"{name}.{suffix}: {problem[:500]}")
    print(f"{torch.__name__} {torch.__version__}: {count - wrong} of {count} files read alike")
    return wrong


def both(command):
    other = shlex.split(command) + [__file__]
    own = [sys.executable, __file__]
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = f"{folder}/ours", f"{folder}/theirs"
        steps = (
            [*own, "write", ours],
            [*other, "read", ours, "--module", "torch"],
            [*other, "write", theirs, "--module", "torch"],
            [*own, "read", theirs],
        )
        return sum(subprocess.run(step).returncode != 0 for step in steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["write", "read", "both"])
    parser.add_argument("where")
    parser.add_argument("--module", default="tessera")
    options = parser.parse_args()
    if options.what == "both":
        sys.exit(both(options.where))
    torch = importlib.import_module(options.module)
    folder = Path(options.where)
    sys.exit(1 if (write if options.what == "write" else read)(torch, folder) else 0)


if __name__ == "__main__":
    main()
