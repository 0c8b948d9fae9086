#!/usr/bin/env python3
"""Includes point one way: a folder of src/tessera may include itself and the stages below it."""

import re
from pathlib import Path

from common import files, finish, read

# From the bottom up. Folders that are not named here stand on top of all of these; among
# themselves they may include each other as long as no circle comes of it.
STAGES = ["base", "profile", "tensor", "driver", "memory", "ops", "fuse", "autograd", "amp", "call"]
TOP = len(STAGES)
UMBRELLA = TOP + 1

# A backend sees the contract and the bodies, and nothing of what is built on them.
BACKENDS_MAY = (
    "tessera/base/",
    "tessera/driver/",
    "tessera/memory/",
    "tessera/ops/",
    "tessera/gen/",
    "tessera/tensor/rng.h",
    # What libraries between processes offer, and the loops of their reductions.
    "tessera/distributed/device_engine.h",
    "tessera/distributed/engine.h",
    "tessera/distributed/reduce.h",
)

INCLUDE = re.compile(r'^\s*#\s*include\s*["<](tessera/[^">]+)[">]')
# A compiler may put libstdc++ into each library, and locales do not survive two of them in one
# process. (Programs may print: that is compiled into the program.)
STREAMS = re.compile(r"^\s*#\s*include\s*<(fstream|iostream|sstream|iomanip|locale|regex)>")


def stage_of(include: str) -> tuple[int, str]:
    """The rank and the folder of a header named as `tessera/folder/file.h`."""
    parts = include.split("/")
    if len(parts) == 2:
        return UMBRELLA, ""
    folder = "ops" if parts[1] == "gen" else parts[1]
    return (STAGES.index(folder) if folder in STAGES else TOP), folder


def includes_of(path: Path):
    for number, line in enumerate(read(path).splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1)


def circle(edges: dict[str, dict[str, tuple[Path, int]]]) -> list[str]:
    """Folders that include each other in a circle, or nothing."""
    state: dict[str, int] = {}

    def visit(folder: str, path: list[str]) -> list[str]:
        state[folder] = 1
        for target in edges.get(folder, {}):
            if state.get(target) == 1:
                return path[path.index(target) :] + [target]
            if target not in state:
                found = visit(target, path + [target])
                if found:
                    return found
        state[folder] = 2
        return []

    for folder in sorted(edges):
        if folder not in state:
            found = visit(folder, [folder])
            if found:
                return found
    return []


def main() -> None:
    findings = []
    edges: dict[str, dict[str, tuple[Path, int]]] = {}
    for path in files("src/tessera", suffixes=(".h", ".cpp", ".inc")):
        rank, folder = stage_of(path.as_posix().removeprefix("src/"))
        for number, include in includes_of(path):
            their_rank, their_folder = stage_of(include)
            if their_rank == UMBRELLA and rank != UMBRELLA:
                findings.append((path, number, f"{include} is for programs, not for the core"))
            elif their_rank > rank:
                findings.append((path, number, f"{folder}/ may not include {include}: above it"))
            elif their_rank == rank == TOP and their_folder != folder:
                edges.setdefault(folder, {}).setdefault(their_folder, (path, number))
    loop = circle(edges)
    if loop:
        path, number = edges[loop[0]][loop[1]]
        findings.append((path, number, "folders include each other: " + " -> ".join(loop)))

    for path in files("backends", suffixes=(".h", ".cpp", ".cu", ".cuh", ".inc")):
        for number, include in includes_of(path):
            if not include.startswith(BACKENDS_MAY):
                findings.append((path, number, f"a backend may not include {include}"))

    for path in files(
        "src", "backends", "python/src", suffixes=(".h", ".cpp", ".cu", ".cuh", ".inc")
    ):
        for number, line in enumerate(read(path).splitlines(), 1):
            if STREAMS.match(line):
                findings.append((path, number, "streams crash where a process has two libstdc++"))

    for path in files("src", "backends", "python/src", "tests", suffixes=(".h", ".cuh")):
        if "#pragma once" not in read(path):
            findings.append((path, 1, "no #pragma once"))
    finish("includes", findings)


if __name__ == "__main__":
    main()
