"""GPU time by kernel of training steps of benchmarks/models.py, on Tessera or PyTorch.

    python3 tools/gpu/model_profile.py [--module tessera] [--only llama_train,vit_train,bert_train]
        [--steps 3] [--top 25]

Each model runs in a process of its own. The table has milliseconds a step, launches a step and the
share of the GPU time; the last line compares the sum with the step's wall time.
"""

import argparse
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import models  # noqa: E402


def kernel_times(profile):
    """Milliseconds and launches by kernel name, from the profile's device events."""
    sums, counts = defaultdict(float), defaultdict(int)
    for event in profile.events():
        if int(event.device_type) == 1:  # DeviceType.CUDA
            sums[event.name] += event.time_range.elapsed_us() / 1e3
            counts[event.name] += 1
    return sums, counts


def profile_model(options):
    torch = models.import_as_torch(options.module)
    torch.manual_seed(0)
    workload = models.rows_by_name()[options.one]("cuda", options.small)
    amp = torch.autocast(
        "cuda", dtype=workload.dtype or torch.bfloat16, enabled=workload.dtype is not None
    )

    def step():
        with torch.set_grad_enabled(workload.training):
            if workload.training:
                workload.optimizer.zero_grad()
            with amp:
                result = workload.step(workload.model)
            if workload.training:
                result.backward()
                workload.optimizer.step()
        return result

    for _ in range(8):
        step().data_ptr()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(options.steps):
        step().data_ptr()
    torch.cuda.synchronize()
    wall = (time.perf_counter() - began) * 1e3 / options.steps
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(options.steps):
            step().data_ptr()
        torch.cuda.synchronize()
    sums, counts = kernel_times(profile)
    total = sum(sums.values())
    print(f"\n{options.one} on {options.module}: ms a step, launches a step, share, kernel")
    for name in sorted(sums, key=sums.get, reverse=True)[: options.top]:
        ms, share = sums[name] / options.steps, sums[name] / total
        print(f"{ms:9.3f} {counts[name] / options.steps:8.1f} {share:7.1%}  {name[:110]}")
    print(f"{total / options.steps:9.3f} ms of kernels a step; {wall:.3f} ms a step unprofiled")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--module", default="tessera")
    parser.add_argument("--only", default="llama_train,vit_train,bert_train")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--top", type=int, default=25)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        profile_model(options)
        return 0
    failed = False
    for name in options.only.split(","):
        command = [sys.executable, __file__, *sys.argv[1:], "--one", name]
        failed |= subprocess.run(command).returncode
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
