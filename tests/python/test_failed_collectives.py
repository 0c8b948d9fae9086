"""A collective that fails poisons its outputs: reading, synchronizing, waiting and the end of the
process say so."""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import KIND
from test_distributed import EMULATED, free_port

import tessera as torch

PROGRAM = Path(__file__).parent / "distributed_programs" / "absent.py"
CHECKED = ("table", "parts", "overwritten", "several", "ddp", "wait", "forked")
ON_DEVICE = {
    "synchronize": {"TEST_HOW": "synchronize"},
    "stream": {"TEST_HOW": "stream"},
    "event": {"TEST_HOW": "event"},
    "library": {},
    "destroy": {},
}
ENDS = {"unread": 1, "status": 3, "error": 1, "worker": 1}  # exit statuses of rank 0


def start(case, folder, backend="", extra=None, **env):
    device = "cpu" if KIND == "cpu" else "cuda"
    folder.mkdir()
    env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    if EMULATED:
        env["TESSERA_EMULATOR"] = "2x1GiB,async"
    env |= {"OMP_NUM_THREADS": "1", "TEST_BACKEND": backend, "PYTHONFAULTHANDLER": "1"}
    ranks = []
    for rank in range(2):
        command = [sys.executable, "-m", "tessera", "run", PROGRAM, case, device, folder]
        ranks.append(
            subprocess.Popen(
                command,
                env=os.environ | env | {"RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        out = ranks[0].communicate(timeout=60)[0]
        (folder / "ended").touch()
        (folder / "checked").touch()
        other = ranks[1].communicate(timeout=60)[0]
    except subprocess.TimeoutExpired:
        for r in ranks:
            r.send_signal(6)
        return -1, "".join(r.communicate()[0] for r in ranks), ""
    finally:
        for r in ranks:
            r.kill()
    return ranks[0].returncode, out, other


def cases():
    names = [*CHECKED, "unread", "status", "error"]
    return names + (list(ON_DEVICE) if KIND == "cuda" else ["worker"] if KIND == "cpu" else [])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """All cases are run at the same time: they mostly wait."""
    backend = "gloo" if KIND == "cpu" else "nccl"
    there, why = torch._C._dist_has_backend(backend)
    if not there:
        pytest.skip(f"without {backend}: {why}")
    if KIND == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("needs two devices")
    folder = tmp_path_factory.mktemp("absent")
    with ThreadPoolExecutor(4) as pool:
        jobs = {
            name: pool.submit(
                start,
                "synchronize" if name in ("stream", "event") else name,
                folder / name,
                **ON_DEVICE.get(name, {}),
            )
            for name in cases()
        }
        return {name: job.result() for name, job in jobs.items()}


@pytest.mark.parametrize("case", cases())
def test_absent_rank(results, case):
    code, out, other = results[case]
    assert "checked" in out, out + other
    assert code == ENDS.get(case, 0), out + other
    report = re.findall(
        "a collective failed, and the process ended before the error was raised.*", out
    )
    assert len(report) == (case in ("unread", "status", "worker")), out
    if report:
        assert "[rank 0] all_reduce of 4 elements" in report[0], out


@pytest.mark.skipif(KIND != "cpu", reason="MPI sees host memory only")
def test_absent_rank_by_mpi(tmp_path):
    there, why = torch._C._dist_has_backend("mpi")
    if not there or not shutil.which("mpirun"):
        pytest.skip(f"without mpi: {why}")
    folder = tmp_path / "mpi"
    folder.mkdir()
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    env |= {"TEST_BACKEND": "mpi", "OMP_NUM_THREADS": "1", "TEST_MPI": "1"}
    command = ["mpirun", "--oversubscribe", "-n", "2", sys.executable, "-m", "tessera", "run"]
    done = subprocess.run(
        [*command, PROGRAM, "several", "cpu", folder],
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "checked" in done.stdout, done.stdout + done.stderr
