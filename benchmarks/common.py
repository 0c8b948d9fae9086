"""What the benchmarks share: peers in the same process, medians of alternating runs, a table."""

import importlib
import os
import statistics
import time

DEVICE = {"cpu": "cpu", "virtual": "cuda", "cuda": "cuda"}[os.environ.get("DEVICE", "cpu")]


def modules():
    """Tessera, and PyTorch where it can be imported."""
    found = {"tessera": importlib.import_module("tessera")}
    try:
        found["torch"] = importlib.import_module("torch")
    except ImportError:
        print("PyTorch cannot be imported here: Tessera alone is measured")
    return found


def synchronize(module):
    if DEVICE == "cuda":
        module.cuda.synchronize()


def time_once(module, function, inner):
    """Seconds a call, the device's work included."""
    synchronize(module)
    begin = time.perf_counter()
    for _ in range(inner):
        function()
    synchronize(module)
    return (time.perf_counter() - begin) / inner


def race(contenders, inner, rounds=7, warm=3):
    """{name: (module, function[, set-up])} -> {name: median seconds}.

    Rounds alternate between contenders; the set-up runs untimed before each of its rounds."""
    times = {name: [] for name in contenders}
    for turn in range(warm + rounds):
        for name, (module, function, *setup) in contenders.items():
            for prepare in setup:
                prepare()
            seconds = time_once(module, function, inner if turn >= warm else max(1, inner // 10))
            if turn >= warm:
                times[name].append(seconds)
    return {name: statistics.median(t) for name, t in times.items()}


def table(title, rows, unit):
    """rows: {row: {column: value}}"""
    columns = list(dict.fromkeys(c for r in rows.values() for c in r))
    print(f"\n{title} ({unit}), device {DEVICE}")
    print(f"{'':28s}" + "".join(f"{c:>18s}" for c in columns))
    for name, row in rows.items():
        cells = "".join(f"{row[c]:18.2f}" if c in row else f"{'-':>18s}" for c in columns)
        print(f"{name:28s}{cells}")
