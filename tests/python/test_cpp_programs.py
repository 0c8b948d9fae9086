"""The tutorials' programs in C++ (examples/cpp) print what the Python originals print."""

import os
import subprocess
from pathlib import Path

import pytest
from conftest import KIND
from test_seeds import PROGRAMS, blocks
from trace_check import check_trace

import tessera

EXAMPLES = Path(tessera._C.__file__).parents[2] / "examples"
SOURCES = Path(__file__).resolve().parents[2] / "examples" / "cpp"


def cpp_name(program):
    """002_03_train_cnn.py is train_cnn.cpp."""
    return program[len("NNN_MM_") :]


def run(name, gpus=None, *arguments):
    path = EXAMPLES / name
    if not path.exists():
        pytest.skip(f"{path} is not built")
    env = {k: v for k, v in os.environ.items() if k != "TESSERA_VIRTUAL_GPU"}
    env["CUDA_VISIBLE_DEVICES"] = ""
    if gpus:
        del env["CUDA_VISIBLE_DEVICES"]
        env["TESSERA_VIRTUAL_GPU"] = gpus
    done = subprocess.run([path, *arguments], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_gpu_setup():
    lines = run("gpu_setup", "2x1GiB", "1")
    assert lines[:3] == ["CUDA is available: True", "Current GPU ID: 0", "Number of GPUs: 2"]
    assert lines[-3:] == [
        "Switched to GPU 1: Virtual GPU",
        "Model successfully moved to GPU",
        "cuda:1",
    ]
    assert run("gpu_setup", "2x1GiB", "2")[-1].endswith("GPU 2 not found. Available GPUs: 0-1")
    lines = run("gpu_setup")
    assert lines[0] == "CUDA is available: False" and lines[1].startswith("  because: ")


def test_gpu_tour():
    *lines, error = run("gpu_tour", "2x2GiB")
    assert lines == [
        "2 0 Virtual GPU",
        "Total memory: 2.15 GB",
        "Compute capability: 0.0",
        "Free: some",
        "created: cuda:0",
        "moved: cuda:0",
        "like: cuda:0",
        "back: cpu",
        "output: cuda:0",
        "pinned: 1, arrived: 1",
        "sum: 2000000, timed: 1",
        "Peak memory: at least 12 MB, net change: about 4 MB",
    ]
    assert error.startswith("RuntimeError: Expected all tensors to be on the same device")
    assert "'input' of shape [32, 100] is on cpu" in error


def test_benchmark_timer():
    lines = run("benchmark_timer", "1x2GiB", "0.01")
    assert lines[:2] == ["matmul: 64 x 64", "cpu"] and " measurement" in "\n".join(lines[:6])
    heads = [line for line in lines if line.startswith("[")]
    assert " matmul " in heads[0] and " relu(a + b) * a " in heads[1]
    assert sum("|  cpu" in line and "cuda:0" in line for line in lines) == 2
    assert lines[-1].startswith("Times are in ")


def test_mixed_precision():
    for gpus in (None, "1x1GiB"):
        *lines, last = run("mixed_precision", gpus)
        losses = [float(line.split()[-1]) for line in lines]
        assert len(losses) == 5 and losses[-1] < 0.01
        assert last.endswith("scale 1024")


def test_ddp():
    """Four processes, and one with all the rows."""
    from test_ddp import free_port, start

    import tessera.distributed as dist

    if not dist.is_backend_available("gloo"):
        pytest.skip("without gloo")
    alone = run("ddp")
    port = free_port()
    ranks = [
        start(
            [EXAMPLES / "ddp"],
            RANK=str(r),
            WORLD_SIZE="4",
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
        )
        for r in range(4)
    ]
    texts = [p.communicate(timeout=120)[0] for p in ranks]
    assert [p.returncode for p in ranks] == [0] * 4, texts
    assert texts[0].splitlines() == alone and texts[1:] == ["", "", ""]


def test_every_program_is_there():
    for program in PROGRAMS:
        assert (SOURCES / f"{cpp_name(program)}.cpp").exists(), program


@pytest.mark.skipif(KIND == "cuda", reason="compares the CPU's numbers, to the last digit")
@pytest.mark.parametrize("program", PROGRAMS)
def test_prints_what_python_prints(program):
    got = run(cpp_name(program), "1x2GiB" if KIND == "virtual" else None)
    assert blocks.difference(got, blocks.expected(program, KIND)) is None


def test_profile_step(tmp_path):
    for gpus in (None, "1x1GiB"):
        path = tmp_path / f"{gpus}.json.gz"
        lines = run("profile_step", gpus, str(path))
        assert lines[1].split()[0] == "Name" and lines[1].rstrip().endswith("# of Calls")
        assert ("Self CUDA" in lines[1]) == bool(gpus)
        assert lines[-3:-1] == ["step: 3 times", "forward: 3 times"]
        check_trace(path)
