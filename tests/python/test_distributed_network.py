"""Jobs whose network or environment fails: a cut cable, a stopped rank, strangers at the ports, no
free file descriptors, no launcher of MPI's."""

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import KIND
from test_distributed import free_port, need, run, script, several

import tessera.distributed as dist

pytestmark = pytest.mark.skipif(KIND != "cpu", reason="the same on every device")
FULL = bool(os.environ.get("TESSERA_FULL"))

LOOP = """
import datetime, os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
dist.all_reduce(torch.ones(3))
os.write(1, f"started {os.getpid()}\\n".encode())
end = time.monotonic() + float(sys.argv[1])
try:
    on = torch.ones(1)
    while on.item():
        on.fill_(time.monotonic() < end)
        dist.broadcast(on, 0)
        time.sleep(0.01)
    os.write(1, b"done\\n")
except dist.DistError as error:
    os.write(1, f"raised at {time.time()}: {error}\\n".encode())
"""


def start_ranks(program, size, seconds, address="127.0.0.1", prefix=lambda rank: [], **env):
    env |= {"MASTER_ADDR": address, "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
    env |= {"TESSERA_DIST_SECRET": "a secret of this test", "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            [*prefix(r), sys.executable, "-m", "tessera", "run", program, str(seconds)],
            env=os.environ | env | {"RANK": str(r)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for r in range(size)
    ]


def first_lines(ranks):
    lines = [r.stdout.readline() for r in ranks]
    if not all(line.startswith("started ") for line in lines):
        for r in ranks:
            r.kill()
        pytest.fail("".join(lines) + "".join(r.communicate()[0] for r in ranks))
    return [int(line.split()[1]) for line in lines]


def ends(ranks, seconds):
    try:
        return [r.communicate(timeout=seconds)[0] for r in ranks]
    finally:
        for r in ranks:
            r.kill()


@pytest.fixture
def two_hosts():
    """Two network namespaces, joined by a cable."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("needs root and iproute2")
    names = [f"tessera{os.getpid()}{side}" for side in "ab"]

    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True, timeout=10)

    try:
        for name in names:
            ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces cannot be made: {error.stderr}")
    try:
        ip("link", "add", "cable", "netns", names[0], "type", "veth", "peer", "cable", "netns",
           names[1])  # fmt: skip
        for at, name in enumerate(names):
            ip("-n", name, "addr", "add", f"10.77.0.{at + 1}/24", "dev", "cable")
            for device in ("lo", "cable"):
                ip("-n", name, "link", "set", device, "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], timeout=10)


def test_cut_cable(tmp_path, two_hosts):
    need("gloo")
    of = [0, 0, 1]  # hosts of the ranks
    ranks = start_ranks(
        script(tmp_path, LOOP),
        3,
        60,
        address="10.77.0.1",
        prefix=lambda r: [
            *("ip", "netns", "exec", two_hosts[of[r]]),
            *("env", f"TESSERA_DIST_ADDRESS=10.77.0.{of[r] + 1}"),
        ],
    )
    first_lines(ranks)
    cut = time.time()
    subprocess.run(["ip", "-n", two_hosts[1], "link", "set", "cable", "down"], check=True)
    for rank, out in enumerate(ends(ranks, 30)):
        found = re.search(r"raised at ([0-9.]+): (.*)", out)
        assert found and f"rank {2 if of[rank] == 0 else 0} died" in found[2], out
        assert float(found[1]) - cut < 3, f"{float(found[1]) - cut:.1f} s: {out}"


@pytest.mark.parametrize("stopped", [0, 1])
def test_stopped_rank(tmp_path, stopped):
    """Longer than the other side of a dead connection would wait."""
    need("gloo")
    ranks = start_ranks(script(tmp_path, LOOP), 2, 1)
    pids = first_lines(ranks)
    os.kill(pids[stopped], signal.SIGSTOP)
    time.sleep(20 if FULL else 5)
    os.kill(pids[stopped], signal.SIGCONT)
    assert all("done" in out for out in ends(ranks, 30))


def test_no_free_descriptors(tmp_path):
    """A connection that cannot be accepted waits, and the server does not spin."""
    program = script(
        tmp_path,
        """
import os, resource, sys, time, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", int(sys.argv[1]), 1, True)
files = []
try:
    while True:
        files.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
os.write(1, b"full\\n")
time.sleep(1.5)
used = time.process_time()
for f in files:
    os.close(f)
os.write(1, f"used {used}\\n".encode())
store.set_timeout(__import__("datetime").timedelta(seconds=20))
store.get("end")
""",
    )
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "tessera", "run", program, str(port)],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )
    try:
        assert server.stdout.readline() == "full\n"
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            used = float(server.stdout.readline().split()[1])
            assert used < 1.2, "the server spins"
            assert stranger.recv(8) == b"tessera1"
        dist.TCPStore("127.0.0.1", port, 1, False).set("end", "1")
        assert server.wait(20) == 0
    finally:
        server.kill()


class TestWithoutMpirun:
    def test_world_of_one(self, tmp_path):
        need("mpi")
        program = script(
            tmp_path,
            """
import torch.distributed as dist
assert not dist.is_mpi_available()
dist.init_process_group("mpi")
""",
        )
        code, out = several(2, program, timeout=60)
        assert code != 0, out
        assert 'init_process_group("mpi"): WORLD_SIZE is 2, but MPI has started 1 process' in out
        assert "mpirun -n 2" in out

    def test_argument(self, tmp_path):
        need("mpi")
        text = 'import torch.distributed as dist; dist.init_process_group("mpi", world_size=3)'
        code, out = run(sys.executable, "-m", "tessera", "run", script(tmp_path, text), timeout=60)
        assert code != 0 and "world_size is 3, but MPI has started 1 process." in out, out

    def test_is_available_under_mpirun(self, tmp_path):
        need("mpi")
        if not shutil.which("mpirun"):
            pytest.skip("mpirun is not installed (openmpi-bin)")
        text = "import torch.distributed as dist; print(dist.is_mpi_available())"
        env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        program = (sys.executable, "-m", "tessera", "run", script(tmp_path, text))
        assert run("mpirun", "--oversubscribe", "-n", "2", *program, env=env)[1].count("True") == 2


def listening(pids):
    """Ports at which these processes listen."""
    inodes = set()
    for pid in pids:
        try:
            for fd in os.scandir(f"/proc/{pid}/fd"):
                target = os.readlink(fd.path)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
        except OSError:
            continue
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(r[1].split(":")[1], 16) for r in rows if r[3] == "0A" and r[9] in inodes}


def disturb(pids, stop):
    """Connects to each port of the processes, and closes; then with random bytes."""
    seen = set()
    while not stop.is_set():
        for port in listening(pids) - seen:
            seen.add(port)
            for data in (b"", os.urandom(1024)):
                try:
                    with socket.create_connection(("127.0.0.1", port), 1) as s:
                        s.sendall(data)
                except OSError:
                    pass


# The first connections after those to the store and its monitor take a while, so that a stranger is
# faster than the peer.
SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>
int connect(int fd, const struct sockaddr* to, socklen_t n) {
  static int count;
  int (*real)(int, const struct sockaddr*, socklen_t) = dlsym(RTLD_NEXT, "connect");
  int at = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  if (at == 3 || at == 4) usleep(500000);
  return real(fd, to, n);
}
"""


@pytest.fixture
def slow_connections(tmp_path):
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("needs a C compiler")
    source, library = tmp_path / "slow.c", tmp_path / "slow.so"
    source.write_text(SLOW)
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
    return str(library)


def test_strangers_at_the_ports(tmp_path, slow_connections):
    need("gloo")
    program = script(
        tmp_path,
        """
import datetime, os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
x = torch.ones(3)
dist.all_reduce(x)
os.write(1, f"sum {x[0].item()}\\n".encode())
""",
    )
    for _ in range(20 if FULL else 1):
        ranks = start_ranks(program, 3, 0, LD_PRELOAD=slow_connections)
        stop = threading.Event()
        stranger = threading.Thread(target=disturb, args=([r.pid for r in ranks], stop))
        stranger.start()
        try:
            outs = ends(ranks, 60)
        finally:
            stop.set()
            stranger.join()
        assert all("sum 3.0" in out for out in outs), "".join(outs)
