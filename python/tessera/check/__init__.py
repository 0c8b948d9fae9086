"""`tessera check`: what a program uses of PyTorch that Tessera lacks, without running it; and
whether a saved file is whole."""

import os
import sys

from ._files import local_modules
from ._findings import Finding, check_source
from ._saved_files import is_saved_file, verify

__all__ = ["Finding", "check_file", "check_program", "check_source", "main", "verify"]


def check_file(path):
    """The findings of one file, in the order of its lines."""
    with open(path, "rb") as file:
        return check_source(file.read(), path)


def check_program(paths):
    """Findings by file: of programs, of all files of folders, and of modules beside them."""
    roots = []
    for path in paths:
        if os.path.isdir(path):
            for parent, folders, names in os.walk(path):
                folders[:] = sorted(f for f in folders if not f.startswith((".", "__pycache__")))
                roots += [os.path.join(parent, n) for n in sorted(names) if n.endswith(".py")]
        else:
            roots.append(path)
    found, waiting = {}, list(roots)
    while waiting:
        path = os.path.normpath(waiting.pop(0))
        if path in found:
            continue
        found[path] = check_file(path)
        waiting += local_modules(path)
    return found


def main(args):
    """Prints file:line: what is missing, and the state of saved files.

    0 if nothing is missing or damaged, 1 if something is, 2 for a bad call.
    """
    if not args or args[0].startswith("-"):
        print(
            "tessera check script.py ...: lists what it uses that is missing\n"
            "tessera check model.pt ...: verifies saved files (also .pth, .safetensors)",
            file=sys.stderr,
        )
        return 2
    saved = [path for path in args if is_saved_file(path)]
    status = max([verify(path) for path in saved], default=0)
    programs = [path for path in args if path not in saved]
    return max(status, _check_programs(programs)) if programs else status


def _check_programs(args):
    try:
        found = check_program(args)
    except (OSError, SyntaxError, ValueError) as error:
        print(f"tessera: {error}", file=sys.stderr)
        return 2
    count = 0
    for path, findings in found.items():
        for finding in findings:
            print(f"{path}:{finding.line}: {finding.text}")
        count += len(findings)
    files = f"{len(found)} file{'' if len(found) == 1 else 's'}"
    print(f"{files}: {count or 'nothing'} missing")
    return 1 if count else 0
