"""What the checks share: the project's files, and how a finding is printed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SKIPPED = {".git", "build", "dist", "__pycache__", ".cache"}


def files(*folders: str, suffixes: tuple[str, ...] = ()) -> list[Path]:
    """The project's files, relative to its root: tracked ones, and new ones git does not ignore.

    `folders` keeps those under one of these folders, `suffixes` those whose names end so. Where
    there is no repository (an unpacked archive), or no git, the tree is walked instead.
    """
    listed = ["-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    git = shutil.which("git") or "false"
    listing = subprocess.run([git, *listed], capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        names = set(listing.stdout.split("\0")) - {""}
    else:
        names = set(_walk())
    kept = []
    for name in sorted(names):
        if folders and not any(name.startswith(folder.rstrip("/") + "/") for folder in folders):
            continue
        if suffixes and not name.endswith(suffixes):
            continue
        if (ROOT / name).is_file():
            kept.append(Path(name))
    return kept


def _walk():
    for folder, names, leaves in os.walk(ROOT):
        names[:] = [n for n in names if n not in _SKIPPED and not n.startswith((".venv", "build"))]
        for leaf in leaves:
            yield os.path.relpath(os.path.join(folder, leaf), ROOT)


def read(path: Path) -> str:
    """A file's text; nothing for one that is no text."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def finish(name: str, findings: list[tuple[Path, int, str]]) -> None:
    """Prints what was found as file:line: message and ends the program, with 1 if anything was."""
    for path, line, message in findings:
        print(f"{path}:{line}: {message}")
    if findings:
        print(f"{name}: {len(findings)} found")
    sys.exit(1 if findings else 0)
