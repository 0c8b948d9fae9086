#!/usr/bin/env python3
"""Only the records enumerate operators: nowhere else stands a list that a new one must join.

A heuristic. The operators' names are those of the records' schemas. Outside the records, the tests
and what is written about them, a run of lines that names many different operators as strings or as
cases of a switch is a list of operators.
"""

import re

from common import files, finish, read

LIMIT = 12  # so many different operators ...
WINDOW = 40  # ... within so many lines
EXEMPT = ("src/tessera/ops/", "tests/", "docs/", "benchmarks/", "examples/", "tools/check/")
SUFFIXES = (".h", ".cpp", ".cu", ".cuh", ".py", ".pyi", ".js", ".json", ".toml", ".txt", ".cmake")

RECORD = re.compile(r"\bTS_OP\w*\s*\(")
SCHEMA = re.compile(r'"([A-Za-z_]\w*)(?:\.\w+)?\(')
QUOTED = re.compile(r"""["']([A-Za-z_]\w*)["']""")
CASE = re.compile(r"\bcase\s+(?:\w+::)*k?([A-Za-z_]\w*)\s*:")


def operators() -> set[str]:
    """Every name that a record's schema defines."""
    names = set()
    for path in files("src/tessera/ops", suffixes=(".cpp", ".h", ".inc")):
        text = read(path)
        if RECORD.search(text):
            names.update(SCHEMA.findall(text))
    return names


def main() -> None:
    known = operators()
    lowered = {name.lower(): name for name in known}
    findings = []
    for path in files(suffixes=SUFFIXES):
        if path.as_posix().startswith(EXEMPT):
            continue
        seen: list[tuple[int, str]] = []
        for number, line in enumerate(read(path).splitlines(), 1):
            seen += [(number, name) for name in QUOTED.findall(line) if name in known]
            seen += [
                (number, lowered[name.lower()])
                for name in CASE.findall(line)
                if name.lower() in lowered
            ]
            seen = [(at, name) for at, name in seen if number - at < WINDOW]
            names = sorted({name for _, name in seen})
            if len(names) >= LIMIT:
                few = ", ".join(names[:4])
                findings.append((path, seen[0][0], f"lists {len(names)} operators ({few}, ...)"))
                break
    finish("enumerates", findings)


if __name__ == "__main__":
    main()
