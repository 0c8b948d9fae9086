"""Runs a benchmark program on PyTorch and on Tessera in turns and shows the medians side by side.

    ./dev python benchmarks/in_turns.py PROGRAM [--device cuda] [--rounds 3] [--only ROWS]
        [--compiled ROWS] [--peer-python PYTHON] [--previous FOLDER] [--out FOLDER]
        [-- ARGUMENT...]

PROGRAM takes --module NAME, --device NAME, --only ROWS, --compile and --out FILE, and writes
{"rows": [{"name", "value", "unit", "lower"}, ...]} there; a row that failed has "error" instead.
--compiled runs these rows with --compile on PyTorch as well. --peer-python is an interpreter that
has PyTorch, where this one has not. --out keeps what each run wrote. Arguments behind -- go to
every run. The status is 1 if a run of Tessera failed, or a row of it.

--previous compares with another build of Tessera instead of PyTorch: FOLDER is its Python path, for
example ../base/build/release/python. Rows whose median is more than 3 % worse are listed at the
end; run those again before calling them slower.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESSERA, EAGER, COMPILED, PREVIOUS = "Tessera", "PyTorch", "compiled", "previous"
SLOWER = 1.03


def run(options, kind, only, file):
    """One run in a process of its own; its rows, or none where it failed."""
    ours = kind in (TESSERA, PREVIOUS)
    python = sys.executable if ours else options.peer_python
    module = "tessera" if ours else "torch"
    environment = dict(os.environ)
    if kind == PREVIOUS:
        environment["PYTHONPATH"] = str(options.previous.resolve())
    words = [python, options.program, "--module", module, "--device", options.device]
    words += [f"--only={only}", f"--out={file}", *options.more]
    words += ["--compile"] * (kind == COMPILED)
    file.unlink(missing_ok=True)
    began = time.monotonic()
    done = subprocess.run(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    print(f"{kind}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    if done.returncode or not file.exists():
        print(done.stdout[-2000:], file=sys.stderr)
        return []
    return json.loads(file.read_text())["rows"]


def figures(rows, kind, name):
    values = [row.get("value") for row in rows[kind] if row["name"] == name]
    return [value for value in values if value is not None]


def cell(values):
    if not values:
        return "-"
    return f"{statistics.median(values):,.4g} ({min(values):,.4g} to {max(values):,.4g})"


def times(ours, theirs, lower):
    """How much faster ours is; for what is no speed, how much less or more."""
    if not ours or not theirs:
        return "-"
    ours, theirs = statistics.median(ours), statistics.median(theirs)
    return f"{theirs / ours if lower else ours / theirs:.2f} x"


def table(rows, kinds):
    named = {row["name"]: row for kind in kinds for row in rows[kind] if "value" in row}
    peers = [kind for kind in kinds if kind != TESSERA]
    lines = [["", "unit", *kinds, *(f"beside {kind}" for kind in peers)]]
    for name, row in named.items():
        by = {kind: figures(rows, kind, name) for kind in kinds}
        beside = [times(by[TESSERA], by[kind], row["lower"]) for kind in peers]
        lines.append([name, row["unit"], *(cell(by[kind]) for kind in kinds), *beside])
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())


def worse_rows(rows):
    """(how many times worse, name) of the rows that are worse than the previous build's."""
    found = []
    for row in {row["name"]: row for row in rows[TESSERA] if "value" in row}.values():
        ours, before = (figures(rows, kind, row["name"]) for kind in (TESSERA, PREVIOUS))
        if not before or not statistics.median(ours) or not statistics.median(before):
            continue
        ratio = statistics.median(ours) / statistics.median(before)
        found.append((ratio if row["lower"] else 1 / ratio, row["name"]))
    return sorted((pair for pair in found if pair[0] > SLOWER), reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows by name, all by default")
    parser.add_argument("--compiled", default="", help="rows that torch.compile runs too")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--previous", type=Path, help="the Python path of another build")
    parser.add_argument("--out", type=Path)
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:cut])
    options.more = words[cut + 1 :]
    kinds = [EAGER, COMPILED, TESSERA] if options.compiled else [EAGER, TESSERA]
    if options.previous:
        kinds = [PREVIOUS, TESSERA]
    rows, failed = {kind: [] for kind in kinds}, False
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for turn in range(1, options.rounds + 1):
            for kind in kinds:
                only = options.compiled if kind == COMPILED else options.only
                got = run(options, kind, only, folder / f"{kind.lower()}{turn}.json")
                rows[kind] += got
                errors = [row for row in got if "error" in row]
                for row in errors:
                    print(f"{kind}: {row['name']}: {row['error']}", file=sys.stderr)
                failed |= kind == TESSERA and (bool(errors) or not got)
    table(rows, kinds)
    if options.previous:
        for ratio, name in worse_rows(rows):
            print(f"worse than before: {ratio:.3f} x  {name}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
