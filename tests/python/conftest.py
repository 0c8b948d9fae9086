"""What the tests share. DEVICE says where tensors live: cpu, virtual or cuda."""

import faulthandler
import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
KIND = os.environ.get("DEVICE", "cpu")
if KIND == "virtual":
    os.environ.setdefault("TESSERA_VIRTUAL_GPU", "2x2GiB")

import tessera as torch

# Seconds that a test may take; `@pytest.mark.limit(N)` sets another limit. A test that takes
# longer fails. If the interpreter cannot run (a hang in C++), the process prints its stacks and
# exits GRACE seconds later.
LIMIT = float(os.environ.get("TESSERA_TEST_SECONDS", "300"))
GRACE = 30
STDERR = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    mark = item.get_closest_marker("limit")
    seconds = mark.args[0] if mark else LIMIT
    owner = os.getpid()

    def stop(_signal, _frame):
        if os.getpid() == owner:  # a forked child keeps the handler
            pytest.fail(f"{item.nodeid} took longer than {seconds:.0f} s", pytrace=True)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds + GRACE, exit=True, file=item.config.stash[STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pytest_configure(config):
    # Before pytest captures the descriptor: what faulthandler writes must reach the log.
    config.stash[STDERR] = os.fdopen(os.dup(sys.__stderr__.fileno()), "w")


def pytest_report_header(config):
    name = torch.cuda.get_device_name() if KIND != "cpu" else "none"
    return f"device: {KIND}, accelerator: {name}"


def pytest_collection_modifyitems(config, items):
    """$TEST_PART=3/14 keeps the third of fourteen parts of the tests, for processes side by side.

    A few neighbours stay together: they need the same kernels."""
    part, _, parts = os.environ.get("TEST_PART", "").partition("/")
    if not parts:
        return
    together = 16
    mine = [i // together % int(parts) == int(part) - 1 for i in range(len(items))]
    config.hook.pytest_deselected(items=[t for t, kept in zip(items, mine) if not kept])
    items[:] = [t for t, kept in zip(items, mine) if kept]


@pytest.fixture(scope="session")
def device():
    """The device under test; skips nothing: a missing one fails."""
    return "cpu" if KIND == "cpu" else "cuda"


@pytest.fixture
def accelerator():
    if KIND == "cpu":
        pytest.skip("needs a cuda device, real or virtual")
    return "cuda"


@pytest.fixture
def cuda(accelerator):
    """The device, where graphs can be captured."""
    if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "0") not in ("", "0"):
        pytest.skip("graphs need the caching allocator")
    torch.manual_seed(0)
    yield accelerator
    torch.compiler.reset()


@pytest.fixture
def compiles(device):
    """Skips where no kernel is compiled: on the CPU, and on the virtual GPU."""
    (torch.ones(3, device=device) + 1).tolist()
    if torch.device(device).type != "cuda" or not any(torch._C._compile_stats()):
        pytest.skip("nothing is compiled here")


@pytest.fixture(autouse=True)
def clean_modes():
    """Modes that a failed test left behind."""
    yield
    torch.set_grad_enabled(True)
