"""Starts the processes of a job on this machine: `tessera run --nproc 4 script.py`, and torchrun's
spelling, `python -m torch.distributed.run --nproc_per_node 4 script.py`.

Each process finds its place in RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and
MASTER_PORT, and the job's secret in TESSERA_DIST_SECRET. When one fails the others are ended.
"""

import argparse
import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# What is given to a process that was asked to end before it is killed.
_GRACE = 5.0


# Where a process notes the error that ends it: the first is the cause of the others.
_NOTES = "TESSERA_RUN_NOTES"


def note_errors():
    """In a process that was started here."""
    folder = os.environ.get(_NOTES)
    if not folder:
        return
    shown = sys.excepthook

    def hook(kind, error, trace):
        try:
            # Whole or not at all: another rank's end may end this process meanwhile.
            draft = Path(folder, f".{os.environ['RANK']}")
            draft.write_text(f"{time.time():.6f} {kind.__name__}: {error}")
            draft.rename(Path(folder, os.environ["RANK"]))
        except OSError:
            pass  # the launcher is gone
        shown(kind, error, trace)

    sys.excepthook = hook


def _first_error(folder):
    """The rank that failed first, and its error; None where nobody noted one."""
    notes = []
    for file in Path(folder).iterdir():
        if file.name.startswith("."):
            continue  # a process that was ended while it wrote
        when, _, text = file.read_text().partition(" ")
        notes.append((float(when), file.name, text))
    return min(notes)[1:] if notes else None


def _parser():
    def option(*names, **settings):
        # torchrun takes names with underscores as well as with dashes.
        both = {n for name in names for n in (name, name.replace("_", "-")) if n.startswith("--")}
        short = [n for n in names if not n.startswith("--")]
        parser.add_argument(*short, *sorted(both, key=len), **settings)

    parser = argparse.ArgumentParser(
        prog="tessera run", description="Starts several processes of one program."
    )
    option("--nproc_per_node", "--nproc", default="1", dest="nproc")
    option("--nnodes", default="1")
    option("--node_rank", type=int, default=int(os.environ.get("GROUP_RANK", 0)))
    option("--master_addr", default=None)
    option("--master_port", type=int, default=None)
    option("--standalone", action="store_true")
    option("--rdzv_endpoint", default="")
    option("--rdzv_backend", default="static")
    option("--rdzv_id", default="none")
    option("--rdzv_conf", default="")
    option("--max_restarts", type=int, default=0)
    option("--monitor_interval", type=float, default=0.05)
    option("--start_method", default="spawn")
    option("--role", default="default")
    option("--virtual_gpu", default=None)
    option("--report", action="store_true")
    option("-m", "--module", action="store_true")
    option("--no_python", action="store_true")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def _count(text):
    """How many processes: a number, or one for each gpu or core."""
    if text.isdigit() and int(text) > 0:
        return int(text)
    if text in ("gpu", "auto"):
        import tessera as torch

        if torch.cuda.is_available():
            return torch.cuda.device_count()
        if text == "gpu":
            raise SystemExit("tessera: --nproc gpu, and there is no GPU")
    elif text != "cpu":
        raise SystemExit(f"tessera: --nproc takes a number, gpu, cpu or auto, not {text}")
    return os.cpu_count() or 1


def _free_port(address):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


def _meeting_point(options, nodes):
    """Address and port at which rank 0 listens."""
    address, _, port = options.rdzv_endpoint.partition(":")
    address = options.master_addr or address or None
    port = options.master_port or int(port or 0)
    if nodes == 1:
        address = address or "127.0.0.1"
        return address, port or _free_port(address)
    if not address:
        raise SystemExit("tessera: several nodes need --master_addr")
    if not os.environ.get("TESSERA_DIST_SECRET"):
        raise SystemExit(
            "tessera: several nodes need one secret: export the same TESSERA_DIST_SECRET on all of "
            "them (for instance from `openssl rand -hex 32`)"
        )
    return address, port or 29500


def _die_with_parent():
    """In the child: when the launcher is killed, so is this process."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def _command(options):
    if options.no_python:
        return [options.program, *options.arguments]
    flags = ["--report"] * options.report + ["-m"] * options.module
    return [sys.executable, "-m", "tessera", "run", *flags, options.program, *options.arguments]


def _start(options, nodes, count, notes):
    address, port = _meeting_point(options, nodes)
    common = {
        "WORLD_SIZE": nodes * count,
        "LOCAL_WORLD_SIZE": count,
        "GROUP_RANK": options.node_rank,
        "GROUP_WORLD_SIZE": nodes,
        "ROLE_NAME": options.role,
        "ROLE_WORLD_SIZE": nodes * count,
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "TORCHELASTIC_RUN_ID": options.rdzv_id,
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
    }
    env = dict(os.environ)
    env[_NOTES] = notes
    env.setdefault("TESSERA_DIST_SECRET", secrets.token_hex(32))
    if count > 1:
        env.setdefault("OMP_NUM_THREADS", "1")
    if options.virtual_gpu:
        env["TESSERA_VIRTUAL_GPU"] = options.virtual_gpu
    processes = []
    for local in range(count):
        rank = options.node_rank * count + local
        own = {"RANK": rank, "LOCAL_RANK": local, "ROLE_RANK": rank}
        env.update({name: str(value) for name, value in (common | own).items()})
        processes.append(subprocess.Popen(_command(options), env=env, preexec_fn=_die_with_parent))
    return processes


def _end(processes):
    for process in processes:
        if process.poll() is None:
            process.terminate()
            process.send_signal(signal.SIGCONT)  # one that was stopped could not hear it
    deadline = time.monotonic() + _GRACE
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _how(code):
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _watch(processes, first_rank):
    """Waits for all; the exit code of the first that failed."""
    running = {process.pid: (first_rank + at, process) for at, process in enumerate(processes)}
    while running:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        if ended.si_pid not in running:
            os.waitpid(ended.si_pid, 0)  # not one of ours
            continue
        rank, process = running.pop(ended.si_pid)
        code = process.wait()
        if code:
            others = f"; ending the other {len(running)}" if running else ""
            print(
                f"tessera: rank {rank} (process {process.pid}) {_how(code)}{others}",
                file=sys.stderr,
            )
            return code if code > 0 else 128 - code
    return 0


def main(args=None):
    options = _parser().parse_args(args)
    nodes = options.nnodes.partition(":")[2] or options.nnodes
    if not nodes.isdigit() or options.nnodes.partition(":")[0] not in ("", nodes):
        raise SystemExit("tessera: --nnodes takes a fixed number: jobs do not grow or shrink")
    if options.max_restarts:
        print("tessera: --max_restarts: processes are not started again", file=sys.stderr)
    count = _count(options.nproc)
    if not options.no_python and not options.module and not os.path.exists(options.program):
        raise SystemExit(f"tessera: there is no {options.program}")

    def interrupted(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupted)
    with tempfile.TemporaryDirectory(prefix="tessera-run-") as notes:
        processes = _start(options, int(nodes), count, notes)
        try:
            return _watch(processes, options.node_rank * count)
        except KeyboardInterrupt:
            return 130
        finally:
            _end(processes)
            if first := _first_error(notes):
                print(
                    f"tessera: the first error was rank {first[0]}'s: {first[1]}", file=sys.stderr
                )


if __name__ == "__main__":
    sys.exit(main())
