"""DistributedDataParallel on a GPU: two processes that share it, and NCCL in a job of one.

    python3 tools/gpu/ddp_check.py                 everything that is there
    python3 tools/gpu/ddp_check.py --backend mpi   two processes by one backend (mpi, gloo)
    python3 tools/gpu/ddp_check.py --nccl          NCCL alone
    python3 tools/gpu/ddp_check.py --times         a step of an MLP: alone, and under DDP

Tessera must be importable. NCCL refuses two ranks on one GPU, so two processes go through the host.
Each trains 50 steps on its half of every batch; parameters have to be the same bits on both, and
those of one process with the whole batch within a relative 1e-4. What is not there is said and left
out; the status is 1 if something failed.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

CASES = Path(__file__).resolve().parents[2] / "tests" / "python" / "ddp_cases.py"
SHARED = (
    "same_as_one_process",
    "small_buckets",
    "as_views",
    "static_graph",
    "finds_unused",
    "accumulates",
    "unused_parameters",
    "buffers",
    "compressed",
    "mixed_precision",
    "checkpointed",
    "state_and_copies",
)
ALONE = ("same_as_one_process", "small_buckets", "as_views", "accumulates", "mixed_precision")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def start(case, backend, size, device):
    command = [sys.executable, str(CASES), case, backend, device]
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    if backend == "mpi":
        launcher = ["mpirun", "--oversubscribe", "-n", str(size)]
        return [subprocess.Popen([*launcher, *command], env=env, **pipes)]
    env.update(WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())
    return [
        subprocess.Popen(command, env={**env, "RANK": str(r), "LOCAL_RANK": str(r)}, **pipes)
        for r in range(size)
    ]


def difference(result):
    """The largest, relative to 1e-5 beside the value: what the tests allow is 1e-4."""
    pairs = [p for a, b in zip(result["ddp"], result["alone"]) for p in zip(a, b)]
    return max(max(abs(x - y) - 1e-5, 0) / max(abs(y), 1e-30) for x, y in pairs)


def verdict(case, result):
    """What it says, and whether it is right."""
    if isinstance(result, dict) and "ddp" in result:
        off = difference(result)
        text = f"bits {'same' if result['bitwise'] else 'DIFFER'} among ranks, off by {off:.1e}"
        if "buckets" in result:
            text += f", {result['overlapped']} of {result['buckets']} buckets overlapped"
        return text, result["bitwise"] and off < 1e-4
    if case == "unused_parameters":
        return "every rank has the same gradients", all(r == result[0] for r in result)
    if case == "buffers":
        return "rank 0's", all(r == result["together"][0] for r in result["together"])
    if case == "mixed_precision":
        falls = result["losses"][-1] < result["losses"][1]
        return f"losses {result['losses'][0]:.3f} to {result['losses'][-1]:.3f}", (
            result["bitwise"] and falls
        )
    if isinstance(result, dict):
        return str(result), bool(result.get("close", result.get("same")))
    return str(result), bool(result)


def check(case, backend, size, device):
    began = time.perf_counter()
    processes = start(case, backend, size, device)
    try:
        texts = [p.communicate(timeout=180)[0] for p in processes]
    except subprocess.TimeoutExpired:
        texts = ["it did not end within 180 s"]
    finally:
        for p in processes:
            p.kill()
    took = time.perf_counter() - began
    lines = [line for text in texts for line in text.splitlines() if line.startswith("RESULT ")]
    name = f"{backend} x {size}  {case}"
    if any(p.returncode != 0 for p in processes) or len(lines) != 1:
        print(f"FAIL  {name}\n" + "\n".join(texts), flush=True)
        return False
    text, right = verdict(case, json.loads(lines[0].removeprefix("RESULT ")))
    print(f"{'ok  ' if right else 'FAIL'}  {name}: {text} ({took:.1f} s)", flush=True)
    return right


def times(backend):
    """Milliseconds of a step, without DDP and with it in a job of one."""
    import tessera as torch
    import tessera.distributed as dist
    from tessera import nn

    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)

    def measure(wrap):
        torch.manual_seed(0)
        layers = [m for _ in range(8) for m in (nn.Linear(2048, 2048), nn.ReLU())]
        model = wrap(nn.Sequential(*layers).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        x = torch.randn(256, 2048, device="cuda")
        taken = []
        for _ in range(30):
            torch.cuda.synchronize()
            began = time.perf_counter()
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = model(x).float().square().mean()
            loss.backward()
            optimizer.step()
            torch.cuda.synchronize()
            taken.append(time.perf_counter() - began)
        return 1e3 * sorted(taken)[len(taken) // 2]

    ddp = nn.parallel.DistributedDataParallel
    for name, wrap in (
        ("without", lambda m: m),
        (f"DDP, {backend}", ddp),
        (f"DDP, {backend}, bucket views", lambda m: ddp(m, gradient_as_bucket_view=True)),
    ):
        print(f"      a step of 8 x 2048, batch 256, bf16: {name}: {measure(wrap):.2f} ms")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", choices=("mpi", "gloo"))
    parser.add_argument("--nccl", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    every = not (options.backend or options.nccl or options.times)
    import tessera as torch
    import tessera.distributed as dist

    if options.device == "cuda":
        print(torch.cuda.get_device_name(), flush=True)
    good = True

    def there(backend):
        ok = dist.is_backend_available(backend)
        if backend == "mpi" and ok and not shutil.which("mpirun"):
            ok = False
        if not ok:
            print(f"      {backend} is not here: left out", flush=True)
        return ok

    for backend in ("mpi", "gloo"):
        if (every or options.backend == backend) and there(backend):
            for case in SHARED:
                good &= check(case, backend, 2, options.device)
    if (every or options.nccl) and there("nccl"):
        for case in ALONE:
            good &= check(case, "nccl", 1, options.device)
    if every or options.times:
        times("nccl" if dist.is_backend_available("nccl") else "gloo")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
