"""`tessera memory`: what a recorded program held, when, and who; and files that are refused."""

import base64
import json
import os
import pickle
import random
import subprocess
import sys
import time
import zlib
from array import array
from pathlib import Path

import pytest

import tessera
from tessera.cuda import memory_viz
from tessera.cuda._memory_view import Replay, SnapshotError, read_snapshot
from tessera.cuda._memory_view.page import page
from tessera.cuda._memory_view.report import report
from tessera.cuda._memory_view.unpickle import unpickle

PACKAGE = Path(tessera.__file__).absolute().parents[1]
PROGRAM = """
import json
import tessera as torch
from tessera import nn

before = torch.ones(1000, 777, device="cuda")
torch.cuda.memory._record_memory_history(max_entries=100000)
seen = []  # events so far, bytes allocated then, bytes reserved


def look():
    events = len(torch.cuda.memory._snapshot()["device_traces"][0])
    seen.append((events, torch.cuda.memory_allocated(), torch.cuda.memory_reserved()))


look()
model = nn.Sequential(nn.Linear(100, 333), nn.ReLU(), nn.Linear(333, 10)).cuda()
look()
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for i in range(6):
    x = torch.rand(100 + 37 * i, 100, device="cuda")
    look()
    y = model(x)
    look()
    y.square().mean().backward()
    look()
    opt.step()
    opt.zero_grad()
    look()
    if i == 3:
        del before
        look()
try:
    torch.empty(1 << 30, device="cuda")
except torch.OutOfMemoryError:
    look()
torch.cuda.memory._dump_snapshot("shot.pickle")
torch.cuda.memory._dump_snapshot("shot.json")
with open("seen.json", "w") as file:
    json.dump(seen, file)
"""


def run(args, folder, **more):
    env = {**os.environ, "TESSERA_VIRTUAL_GPU": "1x2GiB", "TESSERA_FUSE": "0", **more}
    env["PYTHONPATH"] = os.pathsep.join([str(PACKAGE), env.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *args], env=env, cwd=folder, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    (folder / "program.py").write_text(PROGRAM)
    done = run(["program.py"], folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_area_is_what_was_allocated(recorded):
    replay = Replay(read_snapshot(recorded / "shot.pickle"))
    seen = json.loads((recorded / "seen.json").read_text())
    assert len(seen) > 25 and replay.states - 1 == seen[-1][0] > 100
    for events, allocated, reserved in seen:
        assert replay.allocated[events] == allocated
        assert replay.reserved_at(events) == reserved
        assert sum(replay.size[i] for i in replay.alive(events)) == allocated
        assert sum(size for _, size, _ in replay.by_line(events)) == allocated
    assert replay.allocated[replay.peak_state] == max(replay.allocated)
    assert replay.allocated[0] == 1000 * 777 * 4 + (-1000 * 777 * 4) % 512


def test_pickle_and_json_say_the_same(recorded):
    first, second = (read_snapshot(recorded / name) for name in ("shot.pickle", "shot.json"))
    assert first["device_traces"] == second["device_traces"]
    assert page(Replay(first), "x") == page(Replay(second), "x")
    with open(recorded / "shot.pickle", "rb") as file:
        assert pickle.load(file) == first


def test_lines_are_the_programs_own(recorded):
    replay = Replay(read_snapshot(recorded / "shot.pickle"))
    lines = PROGRAM.split("\n")
    found = {}
    for line, _, count in replay.by_line(replay.states - 1):
        file, number, _ = replay.stacks.lines[line]
        assert file.endswith("program.py")
        found[lines[number - 1].strip()] = count
    assert found["opt.step()"] == 4  # momentum of two weights and two biases
    assert sum(count for text, count in found.items() if text.startswith("model =")) == 4


def test_command_writes_a_page_that_needs_nothing_else(recorded):
    done = run(["-m", "tessera", "memory", "shot.pickle", "-o", "out.html"], recorded)
    assert done.returncode == 0, done.stderr
    assert "Peak: " in done.stdout and "Out of memory: 4.00 GiB asked" in done.stdout
    assert "program.py:" in done.stdout and "At the end: " in done.stdout
    text = (recorded / "out.html").read_text()
    assert "default-src 'none'" in text and "%%" not in text
    assert not any(word in text for word in ("http://", "https://", "src=", "@import"))
    data = page_data(text)
    replay = Replay(read_snapshot(recorded / "shot.pickle"))
    arrays = data["arrays"]
    assert arrays["size"] == replay.size and arrays["end"] == replay.end
    groups = len(data["groups"]) + 1
    for k, peak in enumerate(arrays["binPeak"]):
        first = k * data["binWidth"]
        assert replay.allocated[peak] == max(replay.allocated[first : first + data["binWidth"]])
        assert sum(arrays["binSums"][k * groups : (k + 1) * groups]) == replay.allocated[peak]


def page_data(text):
    begin = text.index('id="data">') + len('id="data">')
    data = json.loads(text[begin : text.index("</script>", begin)])
    whole = zlib.decompress(base64.b64decode(data["bytes"]))
    for name, (code, at, length) in data["arrays"].items():
        values = array(code)
        values.frombytes(whole[at : at + length * values.itemsize])
        data["arrays"][name] = values
    return data


def test_memory_viz_commands(recorded):
    viz = ["-m", "tessera.cuda.memory_viz"]
    done = run([*viz, "trace_plot", "shot.pickle", "-o", "plot.html"], recorded)
    assert done.returncode == 0 and "<canvas" in (recorded / "plot.html").read_text()
    done = run([*viz, "trace", "shot.json"], recorded)
    assert "_0 = alloc(" in done.stdout and "OOM: 4.00 GiB asked" in done.stdout
    alias = ["-m", "tessera", "run", "-m", "torch.cuda.memory_viz"]
    done = run([*alias, "segment_plot", "shot.pickle", "-o", "plot.html"], recorded)
    assert done.returncode == 0, done.stderr
    assert '"focus":"segments"' in (recorded / "plot.html").read_text()
    done = run([*alias, "memory", "shot.pickle"], recorded)
    held = sum(int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines())
    assert held == json.loads((recorded / "seen.json").read_text())[-1][1]
    done = run([*viz, "trace", "nowhere.pickle"], recorded)
    assert done.returncode == 1 and "nowhere.pickle: No such file" in done.stderr


# ---- PyTorch's own files ---------------------------------------------------------------------


def frame(line, file="/srv/train.py"):
    return {"filename": file, "line": line, "name": "step"}


def by_hand(block_form="frames", oom_form="device_free"):
    """As PyTorch writes it: C++ calls first, the line of the free at a free."""
    inner = [frame(0, "??"), frame(9, "/usr/lib/python3/dist-packages/torch/nn/functional.py")]
    calls = [*inner, frame(7), frame(99)]
    block = {"size": 2048, "requested_size": 2000, "state": "active_allocated", "address": 4096}
    if block_form == "frames":
        block["frames"] = calls
    else:
        del block["address"], block["requested_size"]
        block["history"] = [{"addr": 4096, "real_size": 2000, "frames": calls}]
    free = {"size": 2048, "requested_size": 0, "state": "inactive", "frames": [], "address": 6144}
    waiting = {**free, "state": "active_pending_free", "address": 8192}

    def entry(action, addr, size, calls=(), **more):
        return {"action": action, "addr": addr, "size": size, "stream": 0, "frames": list(calls)}

    oom = entry("oom", 0, 1 << 40)
    del oom["addr"]
    oom[oom_form] = 12345
    trace = [
        entry("free_requested", 512, 700, [frame(50)]),
        entry("free_completed", 512, 700, [frame(50)]),
        entry("segment_alloc", 4096, 6144),
        entry("alloc", 4096, 2000, calls),
        entry("alloc", 6144, 100, [frame(8)]),
        entry("free_requested", 6144, 100, [frame(51)]),
        entry("free_completed", 6144, 100, [frame(51)]),
        oom,
        entry("user_defined", 0, 0),
        entry("snapshot", 0, 0),
    ]
    segment = {
        "device": 0, "address": 4096, "total_size": 6144, "stream": 0, "segment_type": "small",
        "allocated_size": 2048, "active_size": 4096, "blocks": [block, free, waiting],
    }  # fmt: skip
    return {"segments": [segment], "device_traces": [trace, []]}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("block_form", ["frames", "history"])
@pytest.mark.parametrize("oom_form", ["device_free", "addr"])
def test_pytorchs_schema(tmp_path, protocol, block_form, oom_form):
    path = tmp_path / "shot.pickle"
    path.write_bytes(pickle.dumps(by_hand(block_form, oom_form), protocol=protocol))
    replay = Replay(read_snapshot(path))
    assert list(replay.allocated) == [1024, 0, 0, 0, 2048, 2560, 2048, 2048, 2048, 2048, 2048]
    assert replay.peak_state == 5 and replay.reserved == [(0, 0), (3, 6144)]
    assert replay.ooms == [(8, 1 << 40, 12345, 0)] and replay.marks == [10]
    assert replay.stacks.line_text(replay.by_line(10)[0][0]) == "/srv/train.py:7 step"
    assert replay.stack[0] == 0  # freed here, made somewhere else
    text = report(replay, "shot")
    assert "Out of memory: 1024.00 GiB asked" in text and "2.00 KiB waits for streams" in text
    assert memory_viz.memory(replay).endswith(":9:step;??:0:step 2048\n")


def test_state_alone_and_a_list_of_segments(tmp_path):
    path = tmp_path / "shot.json"
    path.write_text(json.dumps(by_hand()["segments"]))
    replay = Replay(read_snapshot(path))
    assert list(replay.allocated) == [2048] and "No events" in report(replay, "x")
    assert len(page_data(page(replay, "x"))["arrays"]["blockSize"]) == 3


def test_names_cannot_leave_their_place(tmp_path):
    snapshot = by_hand()
    name = "</script><script>alert(1)</script>\x1b[2J%%DATA%%"
    snapshot["device_traces"][0][3]["frames"] = [frame(1, name)]
    text = page(Replay(snapshot), name)
    assert "<script>alert" not in text and text.count("</script>") == 2
    assert "\x1b" not in report(Replay(snapshot), name)


# ---- files that are not snapshots -------------------------------------------------------------


class Hostile:
    def __reduce__(self):
        return os.system, ("touch ran",)


def nested(depth):
    return b"\x80\x04)" + b"\x85" * depth + b"N"


REFUSED = {
    "a call": (pickle.dumps({"segments": [Hostile()]}), "system.*names something to call"),
    "an old call": (b"\x80\x02cos\nsystem\n(X\x02\x00\x00\x00lstR.", "GLOBAL 'os.system'"),
    "a class": (pickle.dumps(Path("x")), "names something to call"),
    "bytes": (pickle.dumps({"segments": b"x"}), "SHORT_BINBYTES"),
    "a set": (pickle.dumps({"segments": {1}}), "EMPTY_SET"),
    "an id": (b"\x80\x04NQ.", "BINPERSID"),
    "an extension": (b"\x80\x04\x82\x01.", "EXT1"),
    "text protocol": (pickle.dumps({}, protocol=0), "not a pickle of protocol 2 to 5"),
    "a long text": (b"\x80\x04\x8d" + b"\xff" * 8 + b"ab", "cut short"),
    "an empty stack": (b"\x80\x04.", "a value is used that is not there"),
    "no mark": (b"\x80\x04}Ku", "a value is used that is not there"),
    "a deep key": (b"\x80\x04}" + nested(100_000)[2:] + b"s.", "neither text nor a number"),
    "no end": (pickle.dumps(by_hand())[:-20], "byte"),
    "a list in a number": (b"\x80\x04K\x01Na.", "appends to int"),
    "half a number": (b"\x80\x04J\x01", "cut short"),
    "a number": (pickle.dumps(5), "holds int"),
    "another dict": (pickle.dumps({"a": 1}), "no list 'segments'"),
    "no traces": (b'{"segments": [], "device_traces": [1]}', "no list of lists"),
    "bad JSON": (b'{"segments": [', "not JSON"),
    "an archive": (b"PK\x03\x04", "archive of torch.save"),
    "nothing": (b"", "empty"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_reason(tmp_path, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    data, why = REFUSED[what]
    path = tmp_path / "shot.pickle"
    path.write_bytes(data)
    with pytest.raises(SnapshotError, match=why):
        read_snapshot(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "entry",
    [
        {},
        5,
        {"action": "alloc"},
        {"action": "alloc", "addr": 1, "size": -5},
        {"action": "alloc", "addr": 1, "size": "x"},
        {"action": "alloc", "addr": 1, "size": 10**400},
        {"action": "alloc", "addr": 1, "size": 1, "frames": [5]},
        {"action": "alloc", "addr": [], "size": 1},
        {"action": "alloc", "addr": 1, "size": float("nan")},
        {"action": "alloc", "addr": 1, "size": 1, "time_us": float("inf")},
    ],
)
def test_wrong_entries_are_named(entry):
    with pytest.raises(SnapshotError, match="not PyTorch's schema"):
        Replay({"segments": [], "device_traces": [[entry]]})


@pytest.mark.parametrize(
    "segment", [5, {}, {"device": []}, {"device": 0, "address": 1, "total_size": "x", "blocks": []}]
)
def test_wrong_segments_are_named(tmp_path, segment):
    path = tmp_path / "shot.json"
    path.write_text(json.dumps({"segments": [segment], "device_traces": []}))
    with pytest.raises(SnapshotError, match="not PyTorch's schema|nothing about device 0"):
        memory_viz.load(path, 0)
    assert memory_viz.main(["stats", str(path)]) == 1


def test_plain_data_comes_back():
    values = [0, -1, 255, 256, 65535, 65536, -(2**31), 2**31, 2**63, -(2**70), 1.5, None, True]
    values += ["", "é" * 300, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {"a": {1: []}}, [[1], [2]]]
    shared = [values, values]
    for protocol in (2, 3, 4, 5):
        back = unpickle(pickle.dumps(shared, protocol=protocol))
        assert back == shared and back[0] is back[1]


# ---- a million events -------------------------------------------------------------------------


def synthetic(events):
    rng = random.Random(1)
    stacks = [[frame(i, f"/srv/m{i % 7}.py"), frame(1)] for i in range(200)]
    trace, live, address, now = [], [], 1 << 40, 10**15
    while len(trace) < events:
        now += rng.randrange(1, 9)
        made = {"stream": 0, "time_us": now}
        if live and (rng.random() < 0.49 or len(live) > 2000):
            entry = live.pop(rng.randrange(len(live)))
            for action in ("free_requested", "free_completed"):
                trace.append({**entry, **made, "action": action})
        else:
            address += 1 << 25
            entry = {
                "addr": address,
                "size": rng.randrange(1, 1 << 24),
                "frames": stacks[now % 200],
            }
            trace.append({**entry, **made, "action": "alloc"})
            live.append(entry)
    return {"segments": [], "device_traces": [trace[:events]]}


def test_a_million_events(tmp_path):
    snapshot = synthetic(1_000_000)
    began = time.process_time()
    replay = Replay(snapshot)
    text = page(replay, "million")
    took = time.process_time() - began
    assert took < 20 and len(text) < 60e6
    data = page_data(text)
    assert data["states"] == 1_000_001 and len(data["arrays"]["binPeak"]) <= 8192
    live = sum(replay.size[i] for i in replay.alive(data["states"] - 1))
    assert live == replay.allocated[-1] > 0


def test_reading_is_quick(tmp_path):
    path = tmp_path / "shot.pickle"
    path.write_bytes(pickle.dumps(synthetic(100_000)))
    began = time.process_time()
    assert len(read_snapshot(path)["device_traces"][0]) == 100_000
    assert time.process_time() - began < 5
