"""Starts the processes of a job on this machine: `tessera run --nproc 4 script.py`, and torchrun's
spelling, `python -m torch.distributed.run --nproc_per_node 4 script.py`.

Each process finds its place in RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and
MASTER_PORT, and the job's secret in TESSERA_DIST_SECRET. When one fails the others are ended.
"""

import argparse
import contextlib
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


_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_WATCHED = (*_FORWARDED, signal.SIGCHLD)

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


def _flag(variable, value):
    if value not in ("", "0", "1"):
        raise SystemExit(f"tessera: {variable} is 0 or 1, not {value}")
    return value == "1"


def _parser():
    def option(*names, **settings):
        # torchrun takes names with underscores as well as with dashes.
        both = {n for name in names for n in (name, name.replace("_", "-")) if n.startswith("--")}
        short = [n for n in names if not n.startswith("--")]
        # torchrun's variables: PET_NPROC_PER_NODE is the default of --nproc_per_node.
        variable = "PET_" + next(n for n in names if n.startswith("--"))[2:].upper()
        value = os.environ.get(variable)
        if value is not None:
            settings["default"] = _flag(variable, value) if "action" in settings else value
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


def _prepare_rank(launcher):
    """Returns what runs in the child: it ends with the launcher, and gets its own signals."""
    pr_set_pdeathsig = 1
    prctl = ctypes.CDLL(None).prctl

    def prepare():
        prctl(pr_set_pdeathsig, signal.SIGKILL)
        if os.getppid() != launcher:  # ended before the call above
            os._exit(1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)

    return prepare


def _command(options):
    if options.no_python:
        return [options.program, *options.arguments]
    flags = ["--report"] * options.report + ["-m"] * options.module
    from tessera import __file__ as package

    launch = Path(package).absolute().parent / "_launch"
    return [sys.executable, launch, "run", *flags, options.program, *options.arguments]


def _start(options, nodes, count, notes, processes):
    """Appends the ranks to `processes` as they are started.

    Each has a session of its own: sessions share the CPU fairly under autogroup scheduling, and
    ranks of one session would starve each other's communication threads.
    """
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
    prepare = _prepare_rank(os.getpid())
    for local in range(count):
        rank = options.node_rank * count + local
        own = {"RANK": rank, "LOCAL_RANK": local, "ROLE_RANK": rank}
        env.update({name: str(value) for name, value in (common | own).items()})
        processes.append(
            subprocess.Popen(_command(options), env=env, preexec_fn=prepare, start_new_session=True)
        )


def _kill(processes):
    """Ends ranks and the processes of their sessions' first group."""
    for process in processes:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _forward(processes, number):
    for process in processes:
        if process.returncode is not None:
            continue
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGTERM:
                process.send_signal(number)
            else:  # a terminal sends it to all processes of a group
                os.killpg(process.pid, number)
            process.send_signal(signal.SIGCONT)  # a stopped process gets no other signal


def _next_signal(seconds):
    """The number of the next signal that was sent to the launcher; None after `seconds`."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        found = signal.sigtimedwait(_WATCHED, left)
        return found and signal.Signals(found.si_signo)
    return None


def _end(processes):
    """Ends the ranks that still run. A signal meanwhile kills them at once."""
    _forward(processes, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while any(p.poll() is None for p in processes):
        number = _next_signal(deadline - time.monotonic())
        if number in _FORWARDED or time.monotonic() >= deadline:
            return _kill(processes)
    return None


def _how(code):
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _failed(processes, first_rank):
    """The exit code of a rank that failed; 0 while there is none."""
    for at, process in enumerate(processes):
        if not (code := process.poll()):
            continue
        left = sum(p.poll() is None for p in processes)
        others = f"; ending the other {left}" if left else ""
        print(
            f"tessera: rank {first_rank + at} (process {process.pid}) {_how(code)}{others}",
            file=sys.stderr,
        )
        return code if code > 0 else 128 - code
    return 0


def _watch(processes, first_rank):
    """Waits for all; the exit code of the first that failed.

    The first signal is forwarded, and the ranks have a while to end by it; the second one kills
    them.
    """
    while any(p.poll() is None for p in processes):
        if code := _failed(processes, first_rank):
            return code
        number = _next_signal(1.0)
        if number in _FORWARDED:
            _forward(processes, number)
            deadline = time.monotonic() + _GRACE
            while any(p.poll() is None for p in processes):
                again = _next_signal(deadline - time.monotonic())
                if again in _FORWARDED or time.monotonic() >= deadline:
                    _kill(processes)
            return 128 + number
    return _failed(processes, first_rank)


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

    # Signals are taken one by one with sigwait: none interrupts the code that ends the ranks.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    processes = []
    try:
        with tempfile.TemporaryDirectory(prefix="tessera-run-") as notes:
            try:
                _start(options, int(nodes), count, notes, processes)
                return _watch(processes, options.node_rank * count)
            finally:
                _end(processes)
                if first := _first_error(notes):
                    print(
                        f"tessera: the first error was rank {first[0]}'s: {first[1]}",
                        file=sys.stderr,
                    )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


if __name__ == "__main__":
    sys.exit(main())
