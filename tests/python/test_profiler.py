"""torch.profiler: names, sums, tables, schedules and traces."""

import json
import os
import re
import threading
import warnings

import pytest
from trace_check import check_trace, read_trace

import tessera as torch
from tessera import nn
from tessera.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


@pytest.fixture
def activities(device):
    return BOTH if device == "cuda" else [ProfilerActivity.CPU]


@pytest.fixture
def program(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(32, 64, device=device)
    y = torch.randint(10, (32,), device=device)

    def step():
        optimizer.zero_grad()
        with record_function("forward"):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    step()
    return step


def by_key(rows):
    return {row.key: row for row in rows}


def test_names_are_pytorchs(program, activities):
    with profile(activities=activities) as prof:
        program()
    names = {event.name for event in prof.events()}
    assert {
        "forward",
        "aten::linear",
        "aten::addmm",
        "aten::relu",
        "aten::mm",
        "AddmmBackward0",
        "autograd::engine::evaluate_function: AddmmBackward0",
        "torch::autograd::AccumulateGrad",
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
        "Optimizer.step#SGD.step",
        "Optimizer.zero_grad#SGD.zero_grad",
        "aten::add_",
    } <= names
    assert any(name.startswith("group::") for name in names)


def test_sums_agree(program, activities):
    with profile(activities=activities) as prof:
        for _ in range(3):
            program()
    events = prof.events()
    rows = by_key(prof.key_averages())
    assert rows["forward"].count == 3
    assert rows["aten::linear"].count == 6
    for event in events:
        if event.device_type == torch.profiler.DeviceType.CPU:
            inside = sum(child.cpu_time_total for child in event.cpu_children)
            assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - inside)
            assert event.self_cpu_time_total >= 0
    total = sum(row.self_cpu_time_total for row in rows.values())
    assert total == pytest.approx(events.self_cpu_time_total)
    assert events.total_average().cpu_time_total >= total
    forward = rows["forward"]
    assert forward.cpu_time == pytest.approx(forward.cpu_time_total / 3)
    assert rows["aten::linear"].cpu_time_total < forward.cpu_time_total


def test_device_times(program, activities, accelerator):
    with profile(activities=activities) as prof:
        for _ in range(2):
            program()
    rows = prof.key_averages()
    kernels = [r for r in rows if r.device_type == torch.profiler.DeviceType.CUDA]
    assert kernels
    on_device = sum(k.self_device_time_total for k in kernels)
    by_operators = sum(r.self_device_time_total for r in rows if r not in kernels)
    assert on_device > 0
    assert by_operators == pytest.approx(on_device, rel=1e-6)
    assert by_key(rows)["forward"].device_time_total > 0
    launching = [event for event in prof.events() if event.kernels]
    assert launching
    text = rows.table(sort_by="cuda_time_total", row_limit=5)
    for title in ("Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"):
        assert title in text
    assert "Self CUDA time total: " in text


def test_table_layout(program, activities):
    with profile(activities=activities, record_shapes=True, profile_memory=True) as prof:
        program()
    text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=4, header="Head")
    lines = text.splitlines()
    assert set(lines[0]) == {"="} and lines[1] == "Head"
    rule, titles = lines[2], lines[3]
    assert lines[4] == rule and lines[9] == rule
    assert titles.split("  ")[-2].strip() == "# of Calls"
    widths = [len(part) for part in rule.split("  ") if part]
    assert widths[1:] == [12] * (len(widths) - 1)
    assert len(lines[0]) == sum(widths) + 2 * (len(widths) - 1)
    for title in ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"):
        assert title in titles
    assert "CPU Mem  Self CPU Mem" in titles
    assert lines[10].startswith("Self CPU time total: ")
    shown = [float(line[widths[0] :].split()[0].rstrip("%")) for line in lines[5:9]]
    assert shown == sorted(shown, reverse=True)
    with pytest.raises(AttributeError):
        prof.key_averages().table(sort_by="nonsense")
    assert prof.key_averages().table(max_name_column_width=20, row_limit=1000).count("...") > 0
    top = prof.key_averages().table(top_level_events_only=True)
    assert "This report only display top-level ops statistics" in top
    assert "aten::linear" not in top
    in_ms = prof.key_averages().table(time_unit="ms")
    assert not re.search(r"\dus", in_ms) and re.search(r"\dms", in_ms)


def test_shapes(device, activities):
    a, b = torch.randn(3, 4, device=device), torch.randn(4, 5, device=device)
    with profile(activities=activities, record_shapes=True) as prof:
        torch.mm(a, b)
        torch.mm(a, b)
        torch.mm(b.t(), a.t())
        torch.cat([a, a])
    rows = [r for r in prof.key_averages(group_by_input_shape=True) if r.key == "aten::mm"]
    assert [(r.input_shapes, r.count) for r in rows] == [
        ([[3, 4], [4, 5]], 2),
        ([[5, 4], [4, 3]], 1),
    ]
    assert "Input Shapes" in prof.key_averages(group_by_input_shape=True).table()
    assert "Input Shapes" not in prof.key_averages().table()
    event = next(e for e in prof.events() if e.name == "aten::cat")
    assert event.input_shapes == [[], []]
    assert event.concrete_inputs[1] == 0


def test_stacks(device, activities, tmp_path):
    a = torch.randn(30, 40, device=device)

    def innermost():
        return a @ a.t()

    with profile(activities=activities, with_stack=True) as prof:
        for _ in range(50):
            innermost()
    event = next(e for e in prof.events() if e.name == "aten::matmul")
    assert "test_profiler.py(" in event.stack[0] and event.stack[0].endswith("innermost")
    rows = prof.key_averages(group_by_stack_n=2)
    row = next(r for r in rows if r.key == "aten::matmul")
    assert len(row.stack) == 2
    assert "Source Location" in rows.table()
    prof.export_stacks(tmp_path / "stacks.txt", "self_cpu_time_total")
    line = (tmp_path / "stacks.txt").read_text().splitlines()[0]
    assert ";" in line and int(line.split()[-1]) > 0
    with pytest.raises(ValueError):
        prof.export_stacks(tmp_path / "stacks.txt", "nonsense")


def test_flops(device, activities):
    a, b = torch.randn(3, 4, device=device), torch.randn(4, 5, device=device)
    image = torch.randn(1, 2, 6, 6, device=device)
    weight = torch.randn(4, 2, 3, 3, device=device)
    with profile(activities=activities, with_flops=True) as prof:
        torch.mm(a, b)
        torch.addmm(torch.randn(5, device=device), a, b)
        a * a
        torch.conv2d(image, weight)
    rows = by_key(prof.key_averages())
    assert rows["aten::mm"].flops == 2 * 3 * 4 * 5
    assert rows["aten::addmm"].flops == 2 * 3 * 4 * 5
    assert rows["aten::mul"].flops == 12
    assert rows["aten::convolution"].flops == 2 * (4 * 4 * 4) * (2 * 3 * 3)
    assert re.search(r"Total K?FLOPs", prof.key_averages().table())


def test_memory(device, activities):
    with profile(activities=activities, profile_memory=True) as prof:
        a = torch.empty(1000, 1000, device=device)
        del a
    rows = by_key(prof.key_averages())
    kind = "cpu" if device == "cpu" else "device"
    taken = getattr(rows["aten::empty"], f"self_{kind}_memory_usage")
    assert 4_000_000 <= taken < 4_200_000
    assert getattr(rows["[memory]"], f"self_{kind}_memory_usage") == -taken


def test_groups_name_their_operators_and_lines(device, activities, tmp_path):
    a = torch.randn(64, 1024, device=device)
    with profile(activities=activities) as prof:
        b = torch.relu(a * 2 + 1)
        line = b.sum().item()
    assert line > 0
    groups = [e for e in prof.events() if e.name.startswith("group::")]
    names = [name for group in groups for name, _ in group.operators]
    assert {"mul", "add", "relu"} <= set(names)
    assert all("test_profiler.py:" in where for g in groups for _, where in g.operators)
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = read_trace(tmp_path / "trace.json")["traceEvents"]
    shown = [e for e in events if e["name"].startswith("group::")]
    assert "relu" in sum((e["args"]["Operators"] for e in shown), [])
    assert any(e["ph"] == "s" and e["cat"] == "deferred" for e in events)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_traces_open(program, activities, tmp_path, name):
    with profile(
        activities=activities, record_shapes=True, profile_memory=True, with_stack=True
    ) as prof:
        for _ in range(3):
            program()
        worker = threading.Thread(target=program)
        worker.start()
        worker.join()
        with record_function('quotes " and \\ and \n and \x01 and \N{SNOWMAN}'):
            torch.ones(3)
    prof.add_metadata("who", 'a "test"')
    prof.add_metadata_json("numbers", "[1, 2]")
    prof.export_chrome_trace(tmp_path / name)
    slices = check_trace(tmp_path / name)
    trace = read_trace(tmp_path / name)
    assert trace["who"] == 'a "test"' and trace["numbers"] == [1, 2]
    assert {(os.getpid(), os.getpid()), (os.getpid(), worker.native_id)} <= slices.keys()
    categories = {e["cat"] for events in slices.values() for e in events}
    assert {"cpu_op", "user_annotation"} <= categories
    if ProfilerActivity.CUDA in activities:
        assert {"kernel", "cuda_runtime"} <= categories or {"kernel", "cuda_driver"} <= categories
    flows = {e["cat"] for e in trace["traceEvents"] if e["ph"] == "s"}
    assert {"fwdbwd", "deferred"} <= flows
    dims = [e["args"].get("Input Dims") for t in slices.values() for e in t]
    assert [[32, 64], [128, 64], [128]] in dims
    with pytest.raises(ValueError):
        prof.add_metadata_json("broken", "{")


def test_a_trace_has_a_size_that_it_keeps(program, activities, tmp_path, monkeypatch):
    with profile(activities=activities) as prof:
        for _ in range(20):
            program()
    monkeypatch.setenv("TESSERA_PROFILE_MAX_BYTES", "60000")
    path = tmp_path / "trace.json"
    with pytest.warns(UserWarning, match="events, the shortest, are not in"):
        prof.export_chrome_trace(path)
    assert path.stat().st_size < 90000
    check_trace(path)
    trace = read_trace(path)
    assert "the shortest" in trace["leftOut"]
    assert any(e["name"] == "forward" for e in trace["traceEvents"])


def test_schedules():
    actions = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    none, warm, record, save = ProfilerAction
    assert [actions(i) for i in range(11)] == [
        none,
        *(none, warm, record, save) * 2,
        none,
        none,
    ]
    with pytest.raises(AssertionError):
        schedule(wait=0, warmup=0, active=0)


def test_a_loop_is_followed(program, activities, tmp_path):
    seen = []

    def ready(prof):
        steps = [e.trace_name for e in prof.events() if e.name == "ProfilerStep*"]
        seen.append((prof.step_num, steps))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with profile(
            activities=activities,
            schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
            on_trace_ready=ready,
        ) as prof:
            for _ in range(10):
                program()
                prof.step()
    assert seen == [
        (4, ["ProfilerStep#2", "ProfilerStep#3"]),
        (8, ["ProfilerStep#6", "ProfilerStep#7"]),
    ]


def test_tensorboard_finds_traces(program, activities, tmp_path):
    handler = torch.profiler.tensorboard_trace_handler(tmp_path / "log", "me")
    with profile(activities=activities, on_trace_ready=handler):
        program()
    (file,) = (tmp_path / "log").iterdir()
    assert file.name.startswith("me.") and file.name.endswith(".pt.trace.json")
    check_trace(file)


def test_profiles_may_lie_in_each_other(activities):
    with profile(activities=activities) as outer:
        torch.ones(3) + 1
        with profile(activities=activities) as inner:
            torch.ones(3) * 2
    names = {e.name for e in inner.events()}
    assert "aten::mul" in names and "aten::add" not in names
    assert {"aten::mul", "aten::add"} <= {e.name for e in outer.events()}


def test_what_is_off_notes_nothing():
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        pass
    torch.ones(3) + 1
    assert len(prof.events()) == 0
    assert prof.key_averages().table() == ""
    assert not torch._C._is_profiling()


def test_results_of_a_profile_that_runs():
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        with pytest.raises(AssertionError):
            prof.key_averages()


def test_decorator_and_nesting():
    @record_function("decorated")
    def f(x):
        return x + 1

    with profile(activities=[ProfilerActivity.CPU]) as prof:
        with record_function("outer"):
            f(torch.ones(3))
    events = {e.name: e for e in prof.events()}
    assert events["decorated"].cpu_parent.name == "outer"
    assert events["outer"].is_user_annotation
    assert "aten::add" in {child.name for child in events["decorated"].cpu_children}


def test_autograd_profiler(tmp_path):
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        x = torch.ones(2, 2, requires_grad=True)
        (x * x).sum().backward()
    assert "aten::mul" in str(prof)
    assert by_key(prof.key_averages())["aten::mul"].count >= 1
    prof.export_chrome_trace(tmp_path / "trace.json")
    check_trace(tmp_path / "trace.json")
    assert prof.self_cpu_time_total > 0
    with torch.autograd.profiler.profile(enabled=False):
        pass
    with torch.autograd.profiler.emit_nvtx():
        torch.ones(2) + 1


def test_loader_has_its_name():
    data = torch.utils.data.TensorDataset(torch.ones(8, 2))
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        for _ in torch.utils.data.DataLoader(data, batch_size=4):
            pass
    names = [e.name for e in prof.events()]
    assert sum(name.startswith("enumerate(DataLoader)#") for name in names) == 3


def test_json_is_valid_for_any_name(tmp_path):
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        for code in range(1, 256):
            with record_function(chr(code)):
                pass
    prof.export_chrome_trace(tmp_path / "t.json")
    names = [e["name"] for e in json.load(open(tmp_path / "t.json"))["traceEvents"]]
    assert {chr(code) for code in range(1, 256)} <= set(names)


def test_a_forked_child_is_not_profiled():
    with profile(activities=[ProfilerActivity.CPU]):
        child = os.fork()
        if child == 0:
            os._exit(torch._C._is_profiling())
        assert os.waitpid(child, 0)[1] == 0
        assert torch._C._is_profiling()


def test_names_that_programs_use():
    assert torch.profiler.profiler.profile is profile
    assert torch.profiler.profiler.ProfilerAction is ProfilerAction
    assert torch.profiler.profiler._default_schedule_fn(3) is ProfilerAction.RECORD
    assert torch.autograd.DeviceType.CUDA == 1 and torch.autograd.kineto_available()
    assert not torch.autograd._profiler_enabled()
    torch.profiler._utils._init_for_cuda_graphs()
    with pytest.raises(NotImplementedError, match="tessera memory"):
        profile(activities=[ProfilerActivity.CPU]).export_memory_timeline("m.html")
