#!/usr/bin/env python3
"""No path of somebody's machine anywhere, and no unfinished business in the code."""

import re

from common import files, finish, read

# Written in pieces, so that this file does not find itself.
PATHS = re.compile(r"(?<![\w.$}~-])/(?:home/[a-z]\w*|Users/[A-Z]\w*|root|work)(?:/|\b(?=[\"' `)]))")
LATER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
CODE = ("src/", "backends/", "python/", "tools/")


def main() -> None:
    findings = []
    for path in files():
        name = path.as_posix()
        if name == "tools/check/words.py":
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            match = PATHS.search(line)
            if match:
                findings.append((path, number, f"a path of one machine: {match.group(0)}"))
            match = name.startswith(CODE) and LATER.search(line)
            if match:
                findings.append((path, number, f"{match.group(0)}: do it, or open an issue"))
    finish("words", findings)


if __name__ == "__main__":
    main()
