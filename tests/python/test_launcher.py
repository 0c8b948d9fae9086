"""`tessera run --nproc`: its options' variables, signals, and the end of its processes."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import KIND

pytestmark = pytest.mark.skipif(KIND != "cpu", reason="the same on every device")

LAUNCHER = [sys.executable, "-m", "tessera", "run"]
# A rank that prints its process and its signals. It ends at the first one if it is polite.
RANK = """
import os, signal, sys, time
def say(*words):
    os.write(1, (" ".join(map(str, words)) + chr(10)).encode())
def heard(number, frame):
    say("heard", signal.Signals(number).name)
    if sys.argv[1] == "polite":
        sys.exit(7)
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(s, heard)
say("process", os.getpid(), os.getsid(0))
end = time.monotonic() + 60
while time.monotonic() < end:
    time.sleep(0.05)
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "rank.py"
    file.write_text(RANK)
    return file


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def await_end(pids, seconds):
    end = time.monotonic() + seconds
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    left = [p for p in pids if is_running(p)]
    for p in left:
        os.kill(p, signal.SIGKILL)
    return left


def started(program, manner, size=2, **settings):
    """The launcher, and the processes and sessions of its ranks."""
    launcher = subprocess.Popen(
        [*LAUNCHER, "--nproc", str(size), program, manner],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **settings,
    )
    lines = [launcher.stdout.readline().split() for _ in range(size)]
    assert all(line[:1] == ["process"] for line in lines), lines
    return launcher, [int(line[1]) for line in lines], [int(line[2]) for line in lines]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_forwarded(program, number):
    launcher, pids, sessions = started(program, "polite", start_new_session=True)
    assert len(set(sessions)) == 2 and launcher.pid not in sessions
    launcher.send_signal(number)
    out = launcher.communicate(timeout=20)[0]
    assert out.count(f"heard {number.name}") == 2, out
    assert launcher.returncode == 128 + number, out
    assert not await_end(pids, 2)


def test_second_signal_kills(program):
    launcher, pids, _ = started(program, "deaf")
    launcher.send_signal(signal.SIGTERM)
    assert launcher.stdout.readline() == "heard SIGTERM\n"
    began = time.monotonic()
    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=20)
    assert time.monotonic() - began < 3
    assert not await_end(pids, 2)


def test_ranks_end_with_a_killed_launcher(program):
    launcher, pids, _ = started(program, "deaf")
    launcher.kill()
    launcher.wait(20)
    launcher.stdout.close()
    assert not await_end(pids, 3)


def test_interrupt_on_a_terminal(program):
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [*LAUNCHER, "--nproc", "2", str(program), "polite"])
    out = b""
    end = time.monotonic() + 30
    while out.count(b"process") < 2 and time.monotonic() < end:
        out += os.read(terminal, 1024)
    pids = [int(line.split()[1]) for line in out.decode().splitlines() if "process" in line]
    os.write(terminal, b"\x03")
    try:
        while data := os.read(terminal, 1024):
            out += data
    except OSError:
        pass  # the terminal's other side is closed
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert out.count(b"heard SIGINT") == 2, out
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGINT
    assert not await_end(pids, 2)


def test_variables_are_defaults(tmp_path):
    file = tmp_path / "rank.py"
    file.write_text(
        "import os; e = os.environ\n"
        "os.write(1, f\"{e['RANK']} {e['ROLE_NAME']} {__name__}\\n\".encode())"
    )
    env = os.environ | {"PET_NPROC_PER_NODE": "2", "PET_ROLE": "trainer", "PET_NNODES": "1"}

    def lines(*options, **more):
        done = subprocess.run(
            [sys.executable, "-m", "tessera.distributed.run", *options],
            env=env | more,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, sorted(done.stdout.splitlines()), done.stderr

    both = [f"{r} trainer __main__" for r in range(2)]
    assert lines("rank.py")[:2] == (0, both)
    assert lines("rank", PET_MODULE="1", PYTHONPATH=f"{tmp_path}:{env['PYTHONPATH']}")[1] == both
    # Options come before them.
    assert lines("--nproc_per_node=1", "--role", "other", "rank.py")[1] == ["0 other __main__"]
    code, _, error = lines("rank.py", PET_MODULE="maybe")
    assert code != 0 and "PET_MODULE is 0 or 1" in error
    assert "invalid int value" in lines("rank.py", PET_MAX_RESTARTS="many")[2]
