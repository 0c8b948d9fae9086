"""Whole models, one process each: time, memory and the first step of training and inference.

    ./dev python benchmarks/models.py [--module tessera] [--device cuda] [--only ROWS] [--small]
        [--compile] [--seconds 6] [--out FILE]
    ./dev python benchmarks/in_turns.py benchmarks/models.py --compiled llama_train,vit_train

Each model of benchmarks/zoo gives five rows: NAME (ms a step, median), NAME_first_s (the first
step, with empty kernel caches), NAME_allocated and NAME_reserved (MiB at most, over steps after the
third; CUDA only), and NAME_settled, the number of steps until a step takes at most 1.2 x the
median. --only names models. --small has the sizes for a CPU; it is the default there.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODULES = ("transformers", "convolutions", "others")


def rows_by_name():
    """The functions that make workloads; the name `torch` must be importable."""
    sys.path.insert(0, str(Path(__file__).parent))
    found = {}
    for module in MODULES:
        found.update(importlib.import_module(f"zoo.{module}").ROWS)
    return found


def names_without_import():
    names = []
    for module in MODULES:
        text = (Path(__file__).parent / "zoo" / f"{module}.py").read_text()
        table = text[text.index("\nROWS = {") :]
        names += [line.split('"')[1] for line in table.splitlines() if line.startswith('    "')]
    return names


def import_as_torch(module):
    torch = importlib.import_module(module)
    if module != "torch":
        sys.modules["torch"] = torch
    return torch


def measure(options):
    torch = import_as_torch(options.module)
    cuda = options.device.startswith("cuda")
    torch.manual_seed(0)
    if options.threads:
        torch.set_num_threads(options.threads)
    workload = rows_by_name()[options.one](options.device, options.small)
    model = torch.compile(workload.model) if options.compile else workload.model
    amp = torch.autocast(
        options.device.split(":")[0], dtype=workload.dtype or torch.bfloat16,
        enabled=workload.dtype is not None,
    )  # fmt: skip

    def step():
        if not workload.training:
            with torch.no_grad(), amp:
                return workload.step(model)
        workload.optimizer.zero_grad()
        with amp:
            loss = workload.step(model)
        loss.backward()
        workload.optimizer.step()
        return loss

    def synchronize():
        if cuda:
            torch.cuda.synchronize()

    def timed():
        synchronize()
        began = time.perf_counter()
        # An address is needed only when the value is: a deferred result is computed here.
        step().data_ptr()
        synchronize()
        return time.perf_counter() - began

    synchronize()
    times = [timed()]
    name = options.one
    rows = [{"name": f"{name}_first_s", "value": times[0], "unit": "s", "lower": True}]
    while len(times) < 3 or (sum(times) < options.seconds / 3 and len(times) < 50):
        times.append(timed())
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        timed()
    settled = []
    while len(settled) < 5 or (sum(settled) < options.seconds / 2 and len(settled) < 200):
        settled.append(timed())
    median = statistics.median(settled)
    steps = next((i for i, t in enumerate(times + settled) if t <= 1.2 * median), 0)
    rows.insert(0, {"name": name, "value": median * 1e3, "unit": "ms", "lower": True})
    rows.append({"name": f"{name}_settled", "value": steps, "unit": "steps", "lower": True})
    if cuda:
        peaks = {
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
        for kind, value in peaks.items():
            row = {"name": f"{name}_{kind}", "value": value / 2**20, "unit": "MiB", "lower": True}
            rows.append(row)
    return rows


def measure_in_child(options, name):
    """Runs one model in a process with empty kernel caches."""
    with tempfile.TemporaryDirectory() as folder:
        caches = ("TESSERA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
        environment = dict(os.environ)
        if not options.keep_caches:
            environment.update({key: f"{folder}/{key}" for key in caches})
            environment["CUDA_CACHE_PATH"] = f"{folder}/cuda"
        out = Path(folder) / "rows.json"
        command = [sys.executable, __file__, "--one", name, "--module", options.module]
        command += ["--device", options.device, "--seconds", str(options.seconds)]
        command += ["--out", str(out), "--threads", str(options.threads)]
        command += ["--small"] * options.small + ["--compile"] * options.compile
        try:
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, timeout=options.limit,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return [{"name": name, "error": f"stopped after {options.limit} s"}]
        if done.returncode or not out.exists():
            last = done.stdout.strip().splitlines()[-1:] or [f"status {done.returncode}"]
            return [{"name": name, "error": last[0][:300]}]
        return json.loads(out.read_text())["rows"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--module", default="tessera")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", default="", help="models, all by default")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--seconds", type=float, default=6, help="for each model")
    parser.add_argument("--limit", type=float, default=240, help="seconds for each process")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--keep-caches", action="store_true", help="keep the kernel caches")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.small |= options.device == "cpu"
    if options.one:
        rows = measure(options)
    else:
        rows = []
        for name in names_without_import():
            if options.only and name not in options.only.split(","):
                continue
            for row in measure_in_child(options, name):
                rows.append(row)
                value = row.get("error") or f"{row['value']:12.4g} {row['unit']}"
                print(f"{row['name']:32s} {value}", flush=True)
    if options.out:
        about = {"module": options.module, "device": options.device, "compile": options.compile}
        options.out.write_text(json.dumps({**about, "rows": rows}, indent=1))
    return int(any("error" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
