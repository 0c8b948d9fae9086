#!/usr/bin/env python3
"""Replays PyTorch's operator samples and holds them to the floor: cases that passed before.

run.py [--update] [--device cpu|cuda] [--jobs N]

Ends with `N passed, M failed`, which counts the cases of the floor. A case that passes and is not
in the floor is reported; --update adds it. No case leaves the floor by itself.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASES = HERE / "cases.zip"


def floor_path(device):
    return HERE / ("floor.json" if device == "cpu" else f"floor_{device}.json")


def key_of(op, variant):
    return f"{op}@{variant}" if variant else op


def all_cases():
    """{operator: [name of each case]}, in the order of the file."""
    with zipfile.ZipFile(CASES) as z:
        cases = json.loads(z.read("cases.json"))
    found = {}
    for case in cases:
        name = f"{case['dtype']}:{case['i']}"
        found.setdefault(key_of(case["op"], case["v"]), []).append(name)
    return found


def replay(device, jobs):
    """What failed: {operator: {case: why}}; and the number of crashes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, HERE / "check.py", CASES, "--module", "tessera"]
        command += ["--device", device, "-j", jobs, "--json", out]
        status = subprocess.run([str(c) for c in command], stdout=subprocess.DEVNULL)
        if status.returncode or not out.exists():
            sys.exit(f"check.py ended with {status.returncode}")
        result = json.loads(out.read_text())
    failures = {}
    for op, variant, dtype, i, why in result["failures"]:
        failures.setdefault(key_of(op, variant), {})[f"{dtype}:{i}"] = why
    return failures, result["crashes"]


def write_floor(path, passing):
    lines = [f"{json.dumps(op)}: {json.dumps(cases)}" for op, cases in sorted(passing.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    path = floor_path(options.device)
    floor = json.loads(path.read_text()) if path.exists() else {}
    if not floor and not options.update:
        sys.exit(f"{path} is not there or holds nothing: nothing to hold the cases to (--update)")
    failures, crashes = replay(options.device, options.jobs)

    passed = failed = total = new = 0
    passing = {}
    found = all_cases()
    for op, cases in found.items():
        wrong = failures.get(op, {})
        known = set(floor.get(op, []))
        total += len(cases)
        for case in cases:
            if case in known:
                passed += case not in wrong
                if case in wrong:
                    failed += 1
                    print(f"{op} {case}: {wrong[case]}")
            elif case not in wrong:
                new += 1
            if case in known or case not in wrong:
                passing.setdefault(op, []).append(case)
    # What the floor names and the file of cases lacks has not passed.
    for op, known in floor.items():
        gone = set(known) - set(found.get(op, []))
        failed += len(gone)
        if gone:
            print(f"{op}: {len(gone)} cases of the floor are not in {CASES.name}")
    if options.update:
        write_floor(path, passing)
    state = "joined the floor" if options.update else "more pass that the floor lacks (--update)"
    print(f"{passed + new} of {total} cases pass; {new} {state}; {crashes} crashes")
    failed += crashes
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
