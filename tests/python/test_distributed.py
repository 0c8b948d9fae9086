"""torch.distributed: jobs of several processes, each of which checks what it gets."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import KIND

import tessera as torch
import tessera.distributed as dist

PROGRAMS = Path(__file__).parent / "distributed_programs"
EMULATED = "TESSERA_EMULATOR" in os.environ


def need(backend):
    if backend == "mpi" and not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed (openmpi-bin)")
    there, why = torch._C._dist_has_backend(backend)
    if not there:
        pytest.skip(f"without {backend}: {why}")


def run(*command, timeout=120, env=None):
    child = subprocess.Popen(
        [str(c) for c in command],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"} | (env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        out, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGABRT)  # every process says where it is
        out, _ = child.communicate()
        pytest.fail(f"not done after {timeout} s: {' '.join(map(str, command))}\n{out}")
    return child.returncode, out


def several(size, program, *args, options=(), **settings):
    launcher = [sys.executable, "-m", "tessera", "run", "--nproc", size, *options]
    return run(*launcher, program, *args, **settings)


def by_mpirun(size, *command, **settings):
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return run("mpirun", "--oversubscribe", "-n", size, *command, env=root, **settings)


def script(tmp_path, text):
    file = tmp_path / "program.py"
    file.write_text(text)
    return file


def test_collectives_by_gloo(device):
    need("gloo")
    backend = "gloo" if KIND == "cpu" else "nccl" if KIND == "virtual" else "gloo"
    code, out = several(4, PROGRAMS / "collectives.py", backend, device)
    assert code == 0 and out.count("done") == 4, out


def test_collectives_by_mpi(device):
    need("mpi")
    program = (sys.executable, PROGRAMS / "collectives.py", "mpi", device)
    code, out = by_mpirun(4 if KIND == "cpu" else 3, *program)
    assert code == 0 and out.count("done") == (4 if KIND == "cpu" else 3), out


@pytest.mark.skipif(KIND != "cuda", reason="NCCL is for CUDA devices")
class TestNccl:
    def test_collectives(self):
        need("nccl")
        size = min(torch.cuda.device_count(), 3)
        code, out = several(size, PROGRAMS / "collectives.py", "nccl", "cuda")
        assert code == 0 and out.count("done") == size, out

    def test_shared_device(self, tmp_path):
        need("nccl")
        program = script(
            tmp_path,
            """
import torch, torch.distributed as dist
dist.init_process_group("nccl")
dist.all_reduce(torch.ones(3, device="cuda:0"))
""",
        )
        code, out = several(2, program)
        assert code == 1 and "NCCL needs a GPU for each rank: ranks 0 and 1 both use" in out, out
        assert "set_device(LOCAL_RANK)" in out

    # The thread that watches held its lock while the last tensor of a call ended, which needs
    # Python's where a Function made it; whoever called the next collective held that.
    def test_tensors_made_in_python(self, tmp_path):
        need("nccl")
        program = script(
            tmp_path,
            """
import torch, torch.distributed as dist
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)

class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad

start = torch.ones(3, device="cuda", requires_grad=True)
for _ in range(2000):
    x = Same.apply(start)
    x.data_ptr()
    dist.all_reduce(x, async_op=True)
    del x
print("done")
""",
        )
        code, out = several(1, program, timeout=60)
        assert code == 0 and "done" in out, out

    @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two devices")
    def test_killed_rank(self, tmp_path):
        need("nccl")
        program = script(
            tmp_path,
            """
import datetime, os, signal, sys, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=20))
try:
    for step in range(10_000):
        if rank == 1 and step == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(torch.ones(3, device="cuda"))
        torch.cuda.synchronize()
except dist.DistBackendError as error:
    print(error)
""",
        )
        env = {"TESSERA_EMULATOR": "2x1GiB,async"} if EMULATED else {}
        port = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
        ranks = [
            subprocess.Popen(
                [sys.executable, "-m", "tessera", "run", program],
                env=os.environ | env | port | {"RANK": str(r)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for r in range(2)
        ]
        out = ranks[0].communicate(timeout=60)[0]
        ranks[1].wait()
        assert re.search(
            r"\[rank 0\] all_reduce of 3 elements of torch.float32, SUM, sequence number [0-9]+ "
            r".*rank 1 died",
            out,
        ), out


@pytest.mark.skipif(KIND != "cpu", reason="the same on every device")
class TestJobs:
    @pytest.mark.parametrize("number", range(3))
    def test_killed_rank(self, number):
        need("gloo")
        count = 34 if os.environ.get("TESSERA_FULL") else 1
        code, out = run(sys.executable, PROGRAMS / "kills.py", count, number, timeout=600)
        assert code == 0, out

    def test_rank_that_hangs_is_named(self, tmp_path):
        need("gloo")
        program = script(
            tmp_path,
            """
import datetime, os, signal, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
dist.barrier()
if dist.get_rank() == 1:
    dist.barrier(group=dist.new_group([1]))
    os.kill(os.getpid(), signal.SIGSTOP)
else:
    dist.new_group([1])
dist.all_reduce(torch.ones(4))
""",
        )
        began = time.monotonic()
        code, out = several(3, program)
        assert code != 0 and time.monotonic() - began < 60
        assert re.search(
            r"\[rank [02]\] all_reduce of 4 elements of torch.float32, SUM, sequence number 2 of "
            r"group 'default_pg', failed: no answer within 2000 ms\n(.*\n)*"
            r"  rank 1: does not answer",
            out,
        ), out

    def test_workers_do_not_hide_the_death_of_their_rank(self, tmp_path):
        """A forked child has copies of its parent's connections, and may live longer."""
        need("gloo")
        program = script(
            tmp_path,
            """
import os, signal, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
if os.fork() == 0:
    os.close(1), os.close(2)
    time.sleep(float(sys.argv[1]))
    os._exit(0)
dist.barrier()
if dist.get_rank() == int(sys.argv[2]):
    os.kill(os.getpid(), signal.SIGKILL)
began = time.monotonic()
try:
    dist.all_reduce(torch.ones(3))
except dist.DistError as error:
    print(f"after {time.monotonic() - began:.1f} s: {error}", flush=True)
""",
        )
        for victim in range(2):
            meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
            ranks = [
                subprocess.Popen(
                    [sys.executable, "-m", "tessera", "run", program, "12", str(victim)],
                    env=os.environ | meet | {"RANK": str(r)},
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for r in range(2)
            ]
            out = ranks[1 - victim].communicate(timeout=60)[0]
            ranks[victim].communicate()
            found = re.search(rf"after (.*) s: .*rank {victim} died", out)
            assert found and float(found[1]) < 10, out

    def test_first_error_is_shown(self, tmp_path):
        need("gloo")
        program = script(
            tmp_path,
            """
import torch, torch.distributed as dist
dist.init_process_group()
if dist.get_rank() == 2:
    raise ValueError("this one is broken")
dist.all_reduce(torch.ones(3))
""",
        )
        code, out = several(3, program)
        assert code == 1 and "Traceback" in out
        assert "the first error was rank 2's: ValueError: this one is broken" in out, out

    def test_a_process_that_is_ended_while_it_notes_its_error(self, tmp_path):
        """What it leaves is no note, and the launcher goes by those of the others."""
        program = script(
            tmp_path,
            """
import os, pathlib
if os.environ["RANK"] == "0":
    raise ValueError("this one is broken")

def stopped(path, text):
    open(path, "w").close()
    os._exit(1)

pathlib.Path.write_text = stopped
raise KeyError("nobody gets to know")
""",
        )
        code, out = several(2, program)
        assert code == 1
        assert "the first error was" not in out or "rank 0's: ValueError" in out, out
        assert "could not convert" not in out and "run.py" not in out, out

    def test_variables_and_spellings(self, tmp_path):
        program = script(
            tmp_path,
            """
import os, sys
names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR TORCHELASTIC_RUN_ID GROUP_RANK"
line = " ".join(os.environ[n] for n in names.split())
secret = len(os.environ["TESSERA_DIST_SECRET"]), int(os.environ["MASTER_PORT"]) > 0
os.write(1, f"{line} {secret[0]} {secret[1]} {sys.argv[1:]}\\n".encode())
""",
        )
        for launcher in (
            ("tessera", "run", "--nproc=2"),
            ("tessera.distributed.run", "--nproc_per_node", "2"),
            ("tessera", "run", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
        ):
            code, out = run(sys.executable, "-m", *launcher, program, "--lr", "3")
            want = [f"{r} {r} 2 2 127.0.0.1 none 0 64 True ['--lr', '3']" for r in range(2)]
            assert code == 0 and sorted(out.splitlines()) == want, out

    def test_killed_launcher_ends_its_processes(self, tmp_path):
        program = script(
            tmp_path, "import os, time; os.write(1, b'%d\\n' % os.getpid()); time.sleep(60)"
        )
        command = [sys.executable, "-m", "tessera", "run", "--nproc", "2", str(program)]
        launcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        children = [int(launcher.stdout.readline()) for _ in range(2)]
        launcher.send_signal(signal.SIGKILL)
        launcher.wait()
        deadline = time.monotonic() + 10
        while any(Path(f"/proc/{c}/cmdline").exists() for c in children):
            states = [Path(f"/proc/{c}/stat") for c in children]
            if all(not s.exists() or s.read_text().split()[2] == "Z" for s in states):
                break
            assert time.monotonic() < deadline, "the processes outlive their launcher"
            time.sleep(0.05)

    def test_killed_rank_of_mpirun(self, tmp_path):
        need("mpi")
        program = script(
            tmp_path,
            """
import os, signal, torch, torch.distributed as dist
dist.init_process_group("mpi")
for step in range(100_000):
    if dist.get_rank() == 1 and step == 50:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(3))
""",
        )
        code, out = by_mpirun(3, sys.executable, "-m", "tessera", "run", program, timeout=60)
        assert code != 0 and re.search("rank 1 .*(signal 9|died)|signal 9", out), out

    def test_deadline_of_mpi(self, tmp_path):
        need("mpi")
        program = script(
            tmp_path,
            """
import datetime, time, torch, torch.distributed as dist
dist.init_process_group("mpi", timeout=datetime.timedelta(seconds=1))
dist.barrier()
if dist.get_rank() == 1:
    time.sleep(20)
dist.all_reduce(torch.ones(3))
""",
        )
        code, out = by_mpirun(2, sys.executable, "-m", "tessera", "run", program, timeout=60)
        assert code != 0 and "sequence number 2 of group 'default_pg', failed: no answer" in out
        assert "rank 1: last called barrier, sequence number 1" in out, out

    def test_mpirun_with_gloo(self, tmp_path):
        need("gloo"), need("mpi")
        program = script(
            tmp_path,
            """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(1) * dist.get_rank()
dist.all_reduce(t)
assert int(os.environ["RANK"]) == dist.get_rank() == int(os.environ["LOCAL_RANK"])
os.write(1, f"sum {t.item()}\\n".encode())
""",
        )
        code, out = by_mpirun(2, sys.executable, "-m", "tessera", "run", program)
        assert code == 0 and out.count("sum 1.0") == 2, out

    def test_init_methods(self, tmp_path):
        need("gloo")
        program = script(
            tmp_path,
            """
import os, sys, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
for turn in range(2):
    for method in sys.argv[1:]:
        method = method.replace("TURN", str(turn))
        dist.init_process_group("gloo", init_method=method, rank=rank, world_size=2)
        t = torch.ones(2)
        dist.all_reduce(t)
        assert t.tolist() == [2, 2]
        dist.destroy_process_group()
print("fine")
""",
        )
        port = free_port()
        methods = ["env://", f"tcp://127.0.0.1:{port}", f"file://{tmp_path}/meet-TURN"]
        code, out = several(2, program, *methods)
        assert code == 0 and out.count("fine") == 2, out
        assert not list(tmp_path.glob("meet-*")), "the last one removes the file"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.mark.skipif(KIND != "cpu", reason="the same on every device")
class TestStores:
    def stores(self, tmp_path):
        tcp = dist.TCPStore("127.0.0.1", 0, 1, True, timeout=timedelta(seconds=20))
        yield tcp
        yield dist.TCPStore("127.0.0.1", tcp.port, None, False)
        yield dist.FileStore(str(tmp_path / "store"), 1)
        yield dist.HashStore()
        yield dist.PrefixStore("before", dist.HashStore())

    def test_keys_and_values(self, tmp_path):
        for number, store in enumerate(self.stores(tmp_path)):
            key = f"key{number}"
            store.set(key, "value")
            assert store.get(key) == b"value"
            store.append(key, "+")
            assert store.get(key) == b"value+"
            assert store.add("n" + key, 2) == 2 and store.add("n" + key, -5) == -3
            assert store.get("n" + key) == b"-3"
            assert store.check([key]) and not store.check([key, "other"])
            assert store.compare_set(key, "no", "new") == b"value+"
            assert store.compare_set(key, "value+", "new") == b"new" == store.get(key)
            assert store.compare_set("fresh" + key, "", "first") == b"first"
            store.multi_set(["a" + key, "b" + key], [b"\0\xff", "2"])
            assert store.multi_get(["a" + key, "b" + key]) == [b"\0\xff", b"2"]
            before = store.num_keys()
            assert store.delete_key(key) and not store.delete_key(key)
            assert store.num_keys() == before - 1
            store.wait(["a" + key], timedelta(seconds=1))
            began = time.monotonic()
            with pytest.raises(dist.DistStoreError, match="wait timeout after 100ms"):
                store.wait(["never"], timedelta(milliseconds=100))
            store.set_timeout(timedelta(milliseconds=50))
            assert store.timeout == timedelta(milliseconds=50)
            with pytest.raises(dist.DistStoreError, match="never"):
                store.get("never")
            assert time.monotonic() - began < 5

    def test_secret(self, monkeypatch):
        monkeypatch.setenv("TESSERA_DIST_SECRET", "the right one")
        store = dist.TCPStore("127.0.0.1", 0, is_master=True)
        store.set("key", "value")
        monkeypatch.setenv("TESSERA_DIST_SECRET", "a wrong one")
        with pytest.raises(dist.DistNetworkError, match="TESSERA_DIST_SECRET differs"):
            dist.TCPStore("127.0.0.1", store.port)
        monkeypatch.delenv("TESSERA_DIST_SECRET")
        with pytest.raises(dist.DistNetworkError, match="TESSERA_DIST_SECRET is not set here"):
            dist.TCPStore("127.0.0.1", store.port)
        assert store.get("key") == b"value"

    def test_no_secret_no_open_address(self, monkeypatch):
        monkeypatch.delenv("TESSERA_DIST_SECRET", raising=False)
        for address in ("0.0.0.0", "::"):
            with pytest.raises(dist.DistError, match="openssl rand"):
                dist.TCPStore(address, 0, is_master=True)

    def test_strangers_are_dropped(self):
        store = dist.TCPStore("127.0.0.1", 0, is_master=True)
        for bytes_sent in (
            b"GET / HTTP/1.1\r\n\r\n" * 30,
            b"\xff" * 1000,
            b"\x40\0\0\0" + b"a" * 64,
        ):
            with socket.create_connection(("127.0.0.1", store.port), timeout=5) as s:
                s.sendall(bytes_sent)
                received = b""
                try:
                    while chunk := s.recv(1000):
                        received += chunk
                except ConnectionResetError:
                    pass
                assert b"ok" not in received[40:]
        store.set("still", "here")
        assert store.get("still") == b"here"

    def test_missing_master(self):
        with pytest.raises(dist.DistNetworkError, match="cannot connect"):
            dist.TCPStore("127.0.0.1", free_port(), timeout=timedelta(milliseconds=200))


class TestAlone:
    """A world of one process needs no library."""

    @pytest.fixture(autouse=True)
    def world(self, tmp_path):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        yield
        if dist.is_initialized():
            dist.destroy_process_group()

    def test_collectives(self, device):
        t = torch.arange(4.0, device=device)
        assert dist.all_reduce(t) is None and t.tolist() == [0, 1, 2, 3]
        out = torch.empty(4, device=device)
        dist.all_gather_into_tensor(out, t)
        dist.all_to_all_single(out, t)
        dist.broadcast(out, 0)
        assert out.tolist() == [0, 1, 2, 3]
        got = [None]
        dist.all_gather_object(got, {"a": 1})
        assert got == [{"a": 1}]
        dist.barrier()
        with pytest.raises(ValueError, match="should not be the same"):
            dist.send(t, 0)

    def test_names(self):
        assert dist.get_rank() == 0 and dist.get_world_size() == 1
        assert dist.get_backend() == "gloo" and dist.is_initialized() and dist.is_available()
        assert dist.group.WORLD is dist.distributed_c10d._get_default_group()
        assert str(dist.ReduceOp.SUM) == "RedOpType.SUM" and dist.ReduceOp.MAX == 4
        assert "rank 0 of 1" in repr(dist.group.WORLD)
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group("gloo")
        with pytest.raises(ValueError, match="should be within the world_size"):
            dist.new_group([0, 1])
        with pytest.raises(TypeError, match="of type torch.Tensor"):
            dist.all_reduce([1])

    def test_sampler_finds_its_place(self):
        sampler = torch.utils.data.DistributedSampler(range(5), shuffle=False)
        assert sampler.num_replicas == 1 and list(sampler) == [0, 1, 2, 3, 4]

    def test_destroyed(self):
        dist.destroy_process_group()
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            dist.get_rank()


@pytest.mark.skipif(KIND != "cpu", reason="the same on every device")
def test_environment_of_slurm(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "SLURM_STEP_ID": "0",
        "SLURM_JOB_ID": "77",
        "SLURM_PROCID": "5",
        "SLURM_NTASKS": "8",
        "SLURM_LOCALID": "1",
        "SLURM_STEP_NODELIST": "node[03-04,11]",
        "SLURM_STEP_NUM_NODES": "2",
    }.items():
        monkeypatch.setenv(name, value)
    found = torch._C._dist_environment()
    assert found["RANK"] == "5" and found["WORLD_SIZE"] == "8" and found["LOCAL_RANK"] == "1"
    assert found["MASTER_ADDR"] == "node03" and 15000 <= int(found["MASTER_PORT"]) < 30000
    monkeypatch.delenv("SLURM_STEP_ID")  # a shell of Slurm's, without srun
    assert "RANK" not in torch._C._dist_environment()
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(ValueError, match="WORLD_SIZE expected, but not set"):
        dist.init_process_group("gloo")


def test_an_exception_is_the_last_word(tmp_path):
    # The group is alive when Python ends: what it holds is nobody's news.
    need("gloo")
    text = """
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
raise RuntimeError("on purpose")
"""
    code, out = run(sys.executable, "-m", "tessera", "run", script(tmp_path, text))
    assert code == 1 and out.rstrip().endswith("RuntimeError: on purpose"), out
