"""Process groups on a GPU machine: NCCL in a job of one, two processes that share the GPU through
the host (mpi, gloo), and what NCCL says to two ranks on one GPU.

    python3 tools/gpu/distributed_check.py              everything
    python3 tools/gpu/distributed_check.py --part nccl  a part alone: nccl, mpi, gloo, shared

Tessera must be importable. The status is 1 if something was wrong; parts whose library is missing
are left out, and it says so.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("NCCL_DEBUG", "WARN")  # what it says of its own troubles

import tessera as torch  # noqa: E402
import tessera.distributed as dist  # noqa: E402

PROGRAM = Path(__file__).parents[2] / "tests" / "python" / "distributed_programs" / "collectives.py"
failures = []

SHARED = """
import torch, torch.distributed as dist
dist.init_process_group("nccl")
dist.all_reduce(torch.ones(3, device="cuda:0"))
"""

TIMES = """
import sys, time, torch, torch.distributed as dist
dist.init_process_group(sys.argv[1])
for n in (1 << 10, 1 << 20, 1 << 25):
    x = torch.ones(n, device="cuda")
    for turn in range(2):
        dist.barrier()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(10):
            dist.all_reduce(x)
        torch.cuda.synchronize()
        seconds = (time.perf_counter() - began) / 10
    if dist.get_rank() == 0:
        print(f"all_reduce, {sys.argv[1]}, {dist.get_world_size()} ranks: {n / 2**18:.3f} MiB in "
              f"{seconds * 1e3:.3f} ms, {n * 4 / seconds / 1e9:.2f} GB/s", flush=True)
dist.destroy_process_group()
"""


def check(name, good, text=""):
    print(f"{'ok  ' if good else 'WRONG'} {name}", flush=True)
    if not good:
        failures.append(name)
        print(text, flush=True)


def run(command, **env):
    done = subprocess.run(
        [str(c) for c in command],
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


def several(size, program, *args, **env):
    return run([sys.executable, "-m", "tessera", "run", "--nproc", size, program, *args], **env)


def by_mpirun(size, *command):
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return run(["mpirun", "--oversubscribe", "-n", size, *command], **root)


def available(backend):
    there, why = torch._C._dist_has_backend(backend)
    if not there:
        print(f"left out: {backend}: {why}")
    return there


def nccl(folder):
    if not available("nccl"):
        return
    code, out = several(1, PROGRAM, "nccl", "cuda", TESSERA_FULL="1")
    check("nccl, one rank: every collective", code == 0 and "rank 0 of 1 done" in out, out)
    code, out = several(1, folder / "times.py", "nccl")
    check("nccl, one rank: times", code == 0, out)
    print(out.strip())

    # A collective is ordered with the current stream on both sides. What the other stream reads is
    # let go of without record_stream: that may not cost the device either.
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    good = True
    side = torch.cuda.Stream()
    for turn in range(50):
        x = torch.ones(1 << 22, device="cuda")
        with torch.cuda.stream(side if turn % 2 else torch.cuda.current_stream()):
            if turn % 2:
                side.wait_stream(torch.cuda.default_stream())
            for _ in range(20):
                x = x * 1.5
            work = dist.all_reduce(x, async_op=True)
            work.wait()
            y = x / x - 1
            good = good and y.abs().max().item() == 0
        torch.cuda.synchronize()
    check("nccl: in the order of streams", good)
    began = time.perf_counter()
    for _ in range(1000):
        dist.all_reduce(x[:8])
    host = (time.perf_counter() - began) / 1000
    torch.cuda.synchronize()
    print(f"all_reduce, nccl, host time of a call: {host * 1e6:.1f} us")
    dist.destroy_process_group()


def mpi(folder):
    if not available("mpi"):
        return
    code, out = by_mpirun(2, sys.executable, PROGRAM, "mpi", "cuda")
    check(
        "mpi, two ranks share the GPU: every collective", code == 0 and out.count("done") == 2, out
    )
    code, out = by_mpirun(4, sys.executable, PROGRAM, "mpi", "cpu")
    check("mpi, four ranks on the CPU", code == 0 and out.count("done") == 4, out)
    code, out = by_mpirun(2, sys.executable, "-m", "tessera", "run", folder / "times.py", "mpi")
    check("mpi: times", code == 0, out)
    print(out.strip())


def gloo(folder):
    if not available("gloo"):
        return
    code, out = several(2, PROGRAM, "gloo", "cuda")
    check(
        "gloo, two ranks share the GPU: every collective", code == 0 and out.count("done") == 2, out
    )
    code, out = several(2, folder / "times.py", "gloo")
    check("gloo: times", code == 0, out)
    print(out.strip())


def shared(folder):
    if not available("nccl"):
        return
    (folder / "shared.py").write_text(SHARED)
    code, out = several(2, folder / "shared.py")
    good = code == 1 and "NCCL needs a GPU for each rank: ranks 0 and 1 both use" in out
    check("nccl refuses two ranks on one GPU, in words", good, out)


def main():
    parts = {"nccl": nccl, "mpi": mpi, "gloo": gloo, "shared": shared}
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--part", choices=parts, action="append")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, {torch.cuda.device_count()} device(s)")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "times.py").write_text(TIMES)
        for part in options.part or parts:
            parts[part](Path(folder))
    print("all well" if not failures else f"WRONG: {', '.join(failures)}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
