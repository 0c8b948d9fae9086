"""Profiles on a GPU: do CUPTI's times agree with events, with the wall clock and with PyTorch's?

    python tools/gpu/profile_check.py [--torch] [--out FOLDER]

Prints a line for each check and ends with 1 if one fails. `--torch` profiles the same program with
PyTorch (in a process of its own) and shows both tables; traces and tables are written to FOLDER.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = """
import json, sys
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(1024, 4096), nn.GELU(), nn.LayerNorm(4096),
    nn.Linear(4096, 1024), nn.ReLU(), nn.Linear(1024, 10),
).cuda()
optimizer = torch.optim.AdamW(model.parameters())
x, y = torch.randn(4096, 1024).cuda(), torch.randint(10, (4096,)).cuda()

def step():
    optimizer.zero_grad()
    with record_function("forward"):
        loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()

for _ in range(10):
    step()
both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
with profile(activities=both, record_shapes=True, profile_memory=True) as prof:
    for _ in range(5):
        step()
print(prof.key_averages().table(sort_by="cuda_time_total", row_limit=25))
prof.export_chrome_trace(sys.argv[1])
"""

failed = []


def check(name, good, said=""):
    print(f"{'ok  ' if good else 'FAIL'} {name} {said}", flush=True)
    if not good:
        failed.append(name)


def overhead(torch, profile, step):
    """Milliseconds of a step without and with a profile, best of a few."""

    def once(n=30):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(n):
            step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / n * 1e3

    off, on = [], []
    for _ in range(5):
        off.append(once())
        with profile():
            on.append(once())
    return min(off), min(on)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--out", default=".")
    options = parser.parse_args()
    out = Path(options.out)
    out.mkdir(exist_ok=True, parents=True)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))
    from trace_check import check_trace

    import tessera as torch
    from tessera.profiler import DeviceType, ProfilerActivity, profile

    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    a @ a
    torch.cuda.synchronize()
    with profile(activities=both) as prof:
        a @ a
        torch.cuda.synchronize()
    how = prof._profile.measured_by
    check("CUPTI takes the times", how == "CUPTI", how)
    kernels = [e for e in prof.events() if e.device_type == DeviceType.CUDA]
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    a @ a
    end.record()
    torch.cuda.synchronize()
    by_events = begin.elapsed_time(end) * 1e3
    by_profile = sum(e.self_device_time_total for e in kernels)
    check(
        "a product's time is that of events",
        0.8 < by_profile / by_events < 1.1,
        f"{by_profile:.1f} us, events {by_events:.1f} us: {[e.name for e in kernels]}",
    )
    rows = prof.key_averages()
    linked = sum(r.self_device_time_total for r in rows if r.device_type == DeviceType.CPU)
    check("every kernel has its operator", abs(linked - by_profile) < 0.01 * by_profile)

    host = torch.randn(64 << 20)
    with profile(activities=both) as prof:
        back = host.cuda().cpu()
    check("copies move what they should", bool((back == host).all()))
    copies = [e for e in prof.events() if e.name.startswith("Memcpy")]
    check("copies are seen", len(copies) >= 2, f"{sorted({e.name for e in copies})}")

    own = PROGRAM.replace("import torch", "import tessera as torch")
    own = own.replace("from torch", "from tessera")
    code = compile(own, "program", "exec")
    sys.argv = ["program", str(out / "tessera.json.gz")]
    names = {}
    begin = time.perf_counter()
    exec(code, names)
    prof = names["prof"]
    slices = check_trace(out / "tessera.json.gz")
    device = [e for track, events in slices.items() if track[0] == 0 for e in events]
    check("the trace opens", len(device) > 50, f"{len(device)} device events")
    busy = sum(e["dur"] for e in device)
    length = max(e["ts"] + e["dur"] for e in device) - min(e["ts"] for e in device)
    check(
        "device events fit into the time",
        busy <= length * 1.02,
        f"busy {busy:.0f} of {length:.0f} us",
    )
    unlinked = [
        e.name
        for e in prof.events()
        if e.device_type == DeviceType.CUDA and e.self_device_time_total and e.name == "group"
    ]
    check("groups have names", not unlinked, f"{len(unlinked)} without")
    (out / "tessera.txt").write_text(prof.key_averages().table(sort_by="cuda_time_total"))
    off, on = overhead(torch, lambda: profile(activities=both), names["step"])
    check("overhead is at most 5 %", on <= off * 1.05, f"{off:.3f} ms, profiled {on:.3f} ms")
    print(f"total {time.perf_counter() - begin:.1f} s")

    if options.torch:
        path = out / "pytorch.json"
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(path)], env=env, capture_output=True, text=True
        )
        (out / "pytorch.txt").write_text(done.stdout)
        print(done.stdout if done.returncode == 0 else done.stderr[-2000:])
        if done.returncode == 0:
            events = json.loads(path.read_text())["traceEvents"]
            print("PyTorch:", sum(e.get("cat") == "kernel" for e in events), "kernels")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
