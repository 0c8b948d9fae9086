"""Programs that end while work is queued on a device end cleanly, however they end.

Exit handlers tear libraries down in reverse order: kernels on other threads must be done by then.
`EXIT_REPEATS=200 DEVICE=virtual pytest tests/python/test_exit.py` repeats each program 200 times.
"""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import KIND

import tessera

BUILD = Path(tessera._C.__file__).parents[2]
PROGRAM = BUILD / "bin" / "exit_program"
SMALL = ["small"] if "TESSERA_EMULATOR" in os.environ else []
REPEATS = int(os.environ.get("EXIT_REPEATS", "2"))

START = """
import atexit, os, signal, sys, threading, time
import tessera as torch
device = "{device}"
conv = torch.nn.Conv2d(3, 16, 3, padding=1).to(device)
small = "TESSERA_EMULATOR" in os.environ  # its kernels run a thousand times slower
images = torch.randn(*((1, 3, 8, 8) if small else (16, 3, 32, 32)), device=device)
square = torch.randn(*((24, 24) if small else (192, 192)), device=device)
ones = torch.ones(1000, device=device)
works = dict(
    conv=lambda: conv(images),
    train=lambda: conv(images).square().mean().backward(),
    product=lambda: square.to(torch.complex64) @ square.to(torch.complex64),
    linalg=lambda: torch.linalg.inv(square),
    fft=lambda: torch.fft.fft(square),
    kernel=lambda: square.cumsum(0).softmax(1),
    random=lambda: torch.randn(100000, device=device),
)
def queue(times=20, name="{work}"):
    for i in range(3 if small else times):
        for one in works if name == "all" else [name]:
            result = works[one]()
    return result
"""
QUEUED = START + "kept = queue()\n"

ENDINGS = {
    "return": ("", 0),
    "exception": ("raise ValueError('the end')", 1),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(4)", 4),
    "sigterm": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "sigterm handled": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\nqueue(1000)",
        5,
    ),
    "forked child": (
        "child = os.fork()\nif child == 0: sys.exit(6)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 6",
        0,
    ),
    "daemon threads": (
        "def loop():\n    while True: queue(1)\n"
        "for i in range(3): threading.Thread(target=loop, daemon=True).start()\n"
        "time.sleep(0.05)",
        0,
    ),
    # Registered late, so that it is the first handler; the interpreter is still whole.
    "atexit": (
        "def end():\n    queue(2)\n    if (ones + ones).sum().item() != 2000: print('wrong')\n"
        "atexit.register(end)",
        0,
    ),
    "other thread": (
        "t = threading.Thread(target=lambda: queue(5))\nt.start()\nt.join()",
        0,
    ),
}
CPP_ENDINGS = {
    "return": 0,
    "exit": 3,
    "quick_exit": 4,
    "_exit": 5,
    "kill": -signal.SIGTERM,
    "thread_exit": 6,
    "thread_work_exit": 7,
    "threads": 8,
    "main_thread_exit": 9,
    "handler": 0,
    "queue_late": 0,
}


def environment(gpus="1x2GiB"):
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    if KIND != "cuda":
        env["TESSERA_VIRTUAL_GPU"] = gpus
    return env


def run(command, env, limit=60):
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit)


def check(command, status, repeats=REPEATS, env=None):
    """Runs the program several times; all must end alike."""

    def once(_):
        done = run(command, env or environment())
        error = done.stderr.splitlines()
        if status == 1 and error and error[0].startswith("Traceback (most recent"):
            del error[1:-1]
            error = [] if error[1:] == ["ValueError: the end"] else error
        if done.returncode == status and not error and "wrong" not in done.stdout:
            return None
        return done.returncode, done.stdout[-300:], done.stderr[-600:]

    with ThreadPoolExecutor(2) as pool:
        failures = [f for f in pool.map(once, range(repeats)) if f]
    assert not failures, f"{len(failures)} of {repeats}: {failures[:3]}"


@pytest.mark.parametrize("ending", ENDINGS)
def test_ends_with_queued_work(accelerator, ending):
    code, status = ENDINGS[ending]
    program = QUEUED.format(device="cuda", work="all") + code
    check([sys.executable, "-c", program], status)


@pytest.mark.parametrize("work", ["conv", "train", "product", "linalg", "fft", "kernel", "random"])
def test_ends_inside_each_library(accelerator, work):
    # Nothing else runs before: the library is opened while the work is queued.
    check([sys.executable, "-c", QUEUED.format(device="cuda", work=work)], 0)


@pytest.mark.parametrize("ending", ["return", "exception", "sys.exit", "daemon threads"])
def test_threads_that_compute_on_the_cpu(ending):
    """Threads that are inside oneDNN or OpenBLAS when the main thread ends."""
    code, status = ENDINGS[ending]
    loops = "".join(
        f"def {work}_loop():\n    while True: queue(1, '{work}')\n"
        f"threading.Thread(target={work}_loop, daemon=True).start()\n"
        for work in ("conv", "product", "linalg", "fft")
    )
    program = START.format(device="cpu", work="all") + loops + "time.sleep(0.05)\n" + code
    env = {**environment(), "OMP_NUM_THREADS": "2"}
    check([sys.executable, "-c", program], status, env=env)


@pytest.mark.parametrize("ending", CPP_ENDINGS)
def test_cpp_programs(accelerator, ending):
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    check([PROGRAM, "all", ending, *SMALL], CPP_ENDINGS[ending])


@pytest.mark.parametrize("ending", ["return", "thread_exit", "threads"])
@pytest.mark.parametrize("gpus", ["", "1x2GiB"])
def test_cpp_programs_of_one_library(gpus, ending):
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    env = environment(gpus)
    if not gpus:
        env["CUDA_VISIBLE_DEVICES"] = ""  # on the CPU
    for work in ("conv", "product"):
        check([PROGRAM, work, ending, *SMALL], CPP_ENDINGS[ending], env=env)


def test_a_queue_that_does_not_drain_is_abandoned():
    if KIND != "virtual":
        pytest.skip("needs a device that computes slowly")
    program = (
        "import tessera as torch\n"
        "a = torch.randn(2000, 2000, dtype=torch.float64, device='cuda')\n"
        "for i in range(200): b = a @ a\n"
        "raise SystemExit(7)\n"
    )
    done = run([sys.executable, "-c", program], {**environment(), "OMP_NUM_THREADS": "1"})
    assert done.returncode == 7
    assert done.stderr == (
        "tessera: the virtual GPU had work queued 5 s after the process began to end; it was "
        "abandoned\n"
    )


def test_no_static_object_is_destroyed():
    """Destructors of static objects run while other threads compute: the backends have none."""
    if subprocess.run(["objdump", "--version"], capture_output=True).returncode:
        pytest.skip("needs objdump")
    for name in ("cpu", "virtual", "onednn", "cuda"):
        library = BUILD / "lib" / f"libtessera_{name}.so"
        if not library.exists():
            continue
        command = ["objdump", "-d", "--no-show-raw-insn", "-C", str(library)]
        text = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
        function, found = "", []
        for line in text.splitlines():
            if line.endswith(">:"):
                function = line.split(" ", 1)[1]
            elif "<__cxa_atexit" in line and "call" in line and function != "<atexit>:":
                found.append(function)
        found = [f for f in found if f != "<atexit>:"]  # a function that is registered
        assert not found, (name, found)
