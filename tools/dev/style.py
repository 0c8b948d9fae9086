#!/usr/bin/env python3
"""Rewrites C++ and Python files in the project's style; with --check, says which are not in it.

C++ is clang-format 14's output (Debian 12's version; others differ in details and are not used),
Python is ruff's.
"""

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "check"))
from common import ROOT, files  # noqa: E402


def clang_format() -> str:
    """The clang-format to use, or nothing if version 14 is not here."""
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            if " 14." in version:
                return path
    return ""


def cpp(check: bool) -> bool:
    tool = clang_format()
    if not tool:
        print("C++ not looked at: clang-format 14 is not here")
        return True
    names = [str(path) for path in files(suffixes=(".h", ".cpp", ".cu", ".cuh"))]
    mode = ["--dry-run", "--Werror"] if check else ["-i"]
    good = True
    for start in range(0, len(names), 50):
        batch = [tool, *mode, *names[start : start + 50]]
        good &= subprocess.run(batch, cwd=ROOT).returncode == 0
    return good


def python(check: bool) -> bool:
    ruff = [sys.executable, "-m", "ruff"]
    if subprocess.run([*ruff, "--version"], capture_output=True).returncode != 0:
        print("Python not looked at: ruff is not here")
        return True
    if check:
        return subprocess.run([*ruff, "format", "--check", "."], cwd=ROOT).returncode == 0
    subprocess.run([*ruff, "check", "--quiet", "--select", "I", "--fix", "."], cwd=ROOT)
    return subprocess.run([*ruff, "format", "--quiet", "."], cwd=ROOT).returncode == 0


def main() -> None:
    check = "--check" in sys.argv[1:]
    good = cpp(check) & python(check)
    if check and not good:
        print("run ./dev format")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
