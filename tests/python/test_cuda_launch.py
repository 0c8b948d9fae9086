"""Kernels that come again are launched through graphs of their own, and nobody notices.

How many such launches there were, only the emulated GPU tells."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, json, sys, threading
import tessera as torch

torch.ones(1, device="cuda")
driver = ctypes.CDLL("libcuda.so.1")
told = hasattr(driver, "emulator_graph_launches")
launches = lambda: driver.emulator_graph_launches() if told else None
graphs = lambda: driver.emulator_executables() if told else None
one = torch.ones(64, device="cuda")


def add(times):
    "Is the sum right every time, and how many launches of graphs was that?"
    before = launches()
    right = all([torch.equal((one + i).cpu(), torch.full((64,), 1.0 + i)) for i in range(times)])
    return right, told and launches() - before

"""


def run(text, mode="", fuse="0", **more):
    env = {k: v for k, v in os.environ.items() if k != "CUDA_INJECTION64_PATH"}
    env |= {"TESSERA_LAUNCH": mode, "TESSERA_FUSE": fuse, **more}
    program = [sys.executable, "-c", PROGRAM + text + "\njson.dump(out, sys.stdout)"]
    done = subprocess.run(program, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


SIZES = """
# One kernel, other arguments each time and five grids; nothing waits for anything.
kept = []
for i in range(300):
    x = torch.full((1 + i * 37 % 5 * 4000,), float(i), device="cuda")
    kept.append((x, x * 2 + i))
    kept[-1][1].data_ptr()
right = all(
    torch.equal(y.cpu(), torch.full((x.numel(),), 3.0 * i)) for i, (x, y) in enumerate(kept)
)
out = right, launches(), graphs()
"""


@pytest.mark.parametrize("fuse", ["0", "1"])
def test_arguments_are_those_of_their_launch(compiles, fuse):
    options = os.environ.get("TESSERA_EMULATOR", "") + ",async"
    right, launches, graphs = run(SIZES, "graph", fuse, TESSERA_EMULATOR=options)
    assert right
    assert launches is None or (launches >= 300 and graphs >= 5)
    right, launches, graphs = run(SIZES, "plain", fuse)
    assert right and not launches and not graphs


@pytest.mark.parametrize("watched", ["CUDA_INJECTION64_PATH", "CUDA_LAUNCH_BLOCKING"])
def test_who_watches_launches_sees_them(compiles, watched):
    if watched == "CUDA_INJECTION64_PATH" and "TESSERA_EMULATOR" not in os.environ:
        pytest.skip("a driver opens what it names")
    right, launches = run("out = add(100)", **{watched: "1"})
    assert right and not launches


def test_rare_kernels_have_no_graph(compiles):
    out = run("out = add(7), graphs()")
    assert out[0][0] and not out[0][1] and not out[1]


def test_frequent_kernels_try_both_ways(compiles):
    few, many, emulated = run("out = add(20), add(60), told")
    assert few[0] and many[0]
    if emulated:  # two launches each; from the 16th on, in turns until there are 24 of each
        assert 2 <= few[1] <= 8 and many[1] >= 20


THREADS = """
a, b = torch.cuda.Stream(), torch.cuda.Stream()
wrong = []


def work(stream, seed):
    with torch.cuda.stream(stream):
        kept = []
        for i in range(400):
            x = torch.full((257,), float(i * seed), device="cuda")
            kept.append(x + seed)
        stream.synchronize()
        for i, y in enumerate(kept):
            if not torch.equal(y.cpu(), torch.full((257,), float(i * seed + seed))):
                wrong.append((seed, i))


threads = [threading.Thread(target=work, args=(s, n + 1)) for n, s in enumerate([a, a, b, b])]
[t.start() for t in threads]
[t.join() for t in threads]
out = wrong, launches()
"""


def test_threads_and_streams_do_not_mix_arguments(compiles):
    options = os.environ.get("TESSERA_EMULATOR", "") + ",async"
    wrong, launches = run(THREADS, "graph", TESSERA_EMULATOR=options)
    assert not wrong and (launches is None or launches > 100)


STREAMS = """
before = graphs()
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    mine = add(5)
of_two = graphs()
foreign = ctypes.c_void_p()
assert driver.cuStreamCreateWithPriority(ctypes.byref(foreign), 1, 0) == 0
with torch.cuda.stream(torch.cuda.ExternalStream(foreign.value)):
    theirs = add(5)
out = mine, theirs, told and of_two - before, told and graphs() - of_two
"""


def test_each_of_our_streams_has_its_own_graphs_and_other_libraries_none(compiles):
    mine, theirs, more, none = run(STREAMS, "graph")
    assert mine[0] and theirs[0] and not theirs[1] and not none
    assert more is False or (mine[1] >= 5 and more >= 1)


MANY = """
right, most = True, 0
for i in range(400):
    x = torch.full((1 + i * 2000,), 2.0, device="cuda")
    right &= (x * 3)[-1].item() == 6
    most = max(most, graphs() or 0)
free, memory = torch.cuda.mem_get_info()
x = torch.ones(5, device="cuda")
for i in range(5000):
    y = x + 1
kinds = [add(2) for i in range(3)]
out = right, most, memory, kinds
"""


def test_graphs_are_few_and_given_up_for_others(compiles):
    right, most, memory, kinds = run(MANY, "graph", TESSERA_INTERPRET="0")
    assert right and all(k[0] for k in kinds)
    assert most <= min(256, memory >> 26)
    if most:
        assert most == min(256, memory >> 26)  # so nothing is free for what comes next
        assert kinds[-1][1] > 0  # others were not used for 4096 launches


LARGE = """
n = torch.cuda.get_device_properties(0).multi_processor_count * 64 * 128 * 16
x = torch.ones(n, device="cuda")
before = launches()
for i in range(5):
    y = x + i
out = told and launches() - before, torch.equal(y.cpu(), torch.full((n,), 5.0))
"""


def test_large_kernels_are_launched_plainly(compiles):
    launches, right = run(LARGE, "graph")
    assert right and not launches


REFUSED = """
driver.emulator_refuse_graphs(1)
none = add(300)
driver.emulator_refuse_graphs(0)
out = none
"""


def test_where_no_graph_can_be_made_kernels_are_launched(compiles):
    if "TESSERA_EMULATOR" not in os.environ:
        pytest.skip("a driver cannot be told to refuse")
    right, launches = run(REFUSED, "graph")
    assert right and not launches


CAPTURED = """
x = torch.arange(64.0, device="cuda")
y = x + 1
torch.cuda.synchronize()
g = torch.cuda.CUDAGraph()
before = launches()
with torch.cuda.graph(g):
    y = x + 1
    y = y + 1
within = told and launches() - before
right = True
for i in range(5):
    x.fill_(float(i))
    g.replay()
    right &= torch.equal(y.cpu(), torch.full((64,), i + 2.0))
out = right, within
"""


def test_captured_work_holds_kernels(compiles, cuda):
    right, within = run(CAPTURED, "graph")
    assert right and not within


PROFILED = """
x = torch.ones(64, device="cuda")
for i in range(5):
    y = x + 1
torch.cuda.synchronize()
before = launches()
with torch.profiler.profile() as p:
    for i in range(7):
        y = x + 1
    torch.cuda.synchronize()
out = told and launches() - before, [e.name for e in p.events() if "add" in e.name]
"""


def test_profiles_show_kernels(compiles):
    within, names = run(PROFILED, "graph")
    assert not within and len([n for n in names if n == "aten::add"]) == 7
