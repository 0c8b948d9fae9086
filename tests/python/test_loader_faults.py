"""What is left when a loader's processes die: an error that names them, and nothing else."""

import ctypes
import faulthandler
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import KIND

import tessera as torch
from tessera.utils.data import DataLoader, Dataset

pytestmark = [
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
    pytest.mark.skipif(KIND != "cpu", reason="of processes, whatever the device"),
]


class Large(Dataset):
    """Samples of a megabyte, so that batches are under way when a worker dies at the ninth."""

    def __init__(self, act):
        self.act = act

    def __len__(self):
        return 40

    def __getitem__(self, i):
        if i == 9:
            self.act()
        return torch.full((250_000,), float(i))


def left_over():
    """Child processes, files in shared memory, open files."""
    gc.collect()
    mine = os.getpid()
    children = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == mine:
                children.append(int(entry))
    files = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            files.append(os.readlink(f"/proc/self/fd/{fd}").split(":")[0])
        except OSError:
            continue
    shared = os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []
    return sorted(children), sorted(shared), sorted(files)


def by_signal(number):
    def act():
        faulthandler.disable()  # of pytest, which would print where
        os.kill(os.getpid(), number)

    return act


def crash():
    faulthandler.disable()
    ctypes.string_at(0)


@pytest.mark.parametrize(
    "act, words",
    [
        (by_signal(signal.SIGKILL), "Killed"),
        (by_signal(signal.SIGABRT), "Aborted"),
        (crash, "Segmentation fault"),
    ],
    ids=["killed", "aborted", "crashed"],
)
def test_a_death_leaves_nothing_behind(act, words):
    list(DataLoader(Large(lambda: None), 4, num_workers=2))  # what is opened once, is open now
    before = left_over()
    batches = iter(DataLoader(Large(act), 4, num_workers=2))
    pids = [worker.process.pid for worker in batches._workers]
    start = time.monotonic()
    with pytest.raises(RuntimeError) as caught:
        for _ in batches:
            pass
    assert time.monotonic() - start < 5
    assert words in str(caught.value) and any(f"pid {pid}" in str(caught.value) for pid in pids)
    del batches, caught
    assert left_over() == before


PARENT = """
import os, sys, time
import tessera as torch
from tessera.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        time.sleep(0.05)
        return torch.zeros(100_000)

batches = iter(DataLoader(Slow(), 2, num_workers=2))
next(batches)
print(*(worker.process.pid for worker in batches._workers), flush=True)
os.kill(os.getpid(), 9)
"""


def ended(pid):
    """Gone, or only waiting for somebody to ask how it ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return True
    return state == "Z"


def test_workers_end_when_their_parent_is_killed():
    env = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PARENT], env=env, stdout=subprocess.PIPE, timeout=60
    )
    assert done.returncode == -signal.SIGKILL
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    start = time.monotonic()
    while not all(map(ended, pids)) and time.monotonic() - start < 8:
        time.sleep(0.05)
    assert all(map(ended, pids))
