#!/usr/bin/env python3
"""No source file grows past what one reads in a sitting: over 1000 lines fails, over 600 warns."""

from common import files, finish, read

FAIL, WARN = 1000, 600
SUFFIXES = (".h", ".cpp", ".cu", ".cuh", ".py", ".pyi", ".sh", ".cmake", ".js", ".html", ".css")


def main() -> None:
    findings = []
    for path in files(suffixes=SUFFIXES):
        text = read(path)
        head = text[:400].lower()
        if "generated" in head and "do not edit" in head:
            continue
        lines = text.count("\n")
        if lines > FAIL:
            findings.append((path, FAIL + 1, f"{lines} lines; at most {FAIL}: split it"))
        elif lines > WARN:
            print(f"{path}:{WARN + 1}: note: {lines} lines; over {WARN} is worth splitting")
    finish("sizes", findings)


if __name__ == "__main__":
    main()
