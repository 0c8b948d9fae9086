"""DistributedDataParallel over processes of this machine; see ddp_cases.py for what they do."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KIND

import tessera as torch
import tessera.distributed as dist

CASES = Path(__file__).parent / "ddp_cases.py"


def environment(**more):
    paths = [str(Path(torch.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def results(processes):
    """Rank 0's result; every process has to end well."""
    outputs = []
    try:
        for p in processes:
            outputs.append(p.communicate(timeout=400)[0])
    finally:
        for p in processes:
            p.kill()
    failed = [i for i, p in enumerate(processes) if p.returncode != 0]
    assert not failed, f"processes {failed} failed:\n" + "\n".join(outputs)
    lines = [line for text in outputs for line in text.splitlines() if line.startswith("RESULT ")]
    assert len(lines) == 1, "\n".join(outputs)
    return json.loads(lines[0].removeprefix("RESULT "))


def start(command, **env):
    return subprocess.Popen(
        command,
        env=environment(OMP_NUM_THREADS="1", **env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(case, device, size=2, backend="gloo"):
    if not dist.is_backend_available(backend):
        pytest.skip(f"without {backend}")
    command = [sys.executable, str(CASES), case, backend, device]
    if backend == "mpi":
        launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(size)]
        return results([start([*launcher, *command])])
    port = free_port()
    return results(
        [
            start(
                command,
                RANK=str(rank),
                LOCAL_RANK=str(rank),
                WORLD_SIZE=str(size),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
            )
            for rank in range(size)
        ]
    )


def check_same(result):
    """Bit for bit among ranks; as one process with the whole batch but for the order of sums."""
    assert result["bitwise"]
    for got, wanted in zip(result["ddp"], result["alone"]):
        assert got == pytest.approx(wanted, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("backend", ["gloo", "mpi"])
def test_four_processes_train_as_one(backend, device):
    """After 50 steps, every rank having started from other values than rank 0."""
    check_same(run("same_as_one_process", device, size=4, backend=backend))


def test_buckets_start_while_backward_runs(device):
    result = run("small_buckets", device)
    check_same(result)
    assert result["buckets"] > 2
    assert result["overlapped"] >= result["buckets"] - 1  # all but the last one


@pytest.mark.parametrize("case", ["as_views", "static_graph", "finds_unused"])
def test_ways_to_reduce(case, device):
    check_same(run(case, device))


def test_no_sync_adds_up(device):
    result = run("accumulates", device)
    assert result["apart"]  # within no_sync gradients are each rank's own
    check_same(result)


def test_unused_parameters(device):
    first, second = run("unused_parameters", device)
    assert first == second
    for step in range(3):  # one rank went left, the other right
        assert first[step]["left.weight"] is not None and first[step]["right.weight"] is not None
        assert first[step]["never.weight"] is None
    assert first[3]["right.weight"] is None  # both went left
    assert first[3]["left.bias"] == pytest.approx(2 * first[0]["left.bias"])


def test_unused_parameters_are_named(device):
    message = run("unused_without_asking", device)
    assert message.startswith("Expected to have finished reduction in the prior iteration")
    assert "rank 0: right.weight, right.bias, never.weight, never.bias" in message
    assert "find_unused_parameters=True" in message


def test_models_that_differ():
    for rank, (shapes, count) in enumerate(run("different_models", "cpu")):
        assert "DDP expects same model across all ranks" in shapes
        assert "1.weight (torch.float32, shape [2, 4]) on rank 0" in shapes
        assert "1.weight (torch.float32, shape [5, 4]) on rank 1" in shapes
        assert "rank 0 has 2 parameters, rank 1 has 4" in count and f"this is rank {rank}" in count


def test_buffers_are_rank_0s(device):
    result = run("buffers", device)
    assert result["before"][0] != result["before"][1]  # each saw its own part
    assert result["after"] == [2, 2]
    assert result["together"][0] == result["together"][1]


def test_a_rank_touches_its_own_device_only(accelerator):
    if KIND != "virtual":
        pytest.skip("needs two devices, and NCCL that knows them")
    result = run("own_device", accelerator, backend="nccl")
    assert result == [[f"cuda:{rank}", f"cuda:{rank}", 1.5, 0] for rank in range(2)]


def test_odd_parameters(device):
    for means, dtypes in run("odd_parameters", device):
        ones = {"complex": 1.5, "halves": 1.5, "doubles": 1.5, "number": 1.5}  # of 1 and 2
        assert means == {**ones, "conv.weight": 6.0, "conv.bias": 4.0}
        assert len(dtypes) == 4


def test_sync_batch_norm(device):
    check_same(run("sync_batch_norm", device, size=3))


def test_communication_hooks(device):
    result = run("hooks_and_views", device)
    assert result["same"] and result["calls"] == [["state", 0, True, 8]]
    assert run("compressed", device) == {"close": True, "grads": 8}


def test_with_autocast_and_a_scaler(device):
    """One rank's gradients overflow: all skip the step."""
    result = run("mixed_precision", device)
    assert result["bitwise"] and result["stepped"] == [i != 5 for i in range(20)]
    assert result["losses"][-1] < 0.9 * result["losses"][1]


def test_reentrant_checkpoints(device):
    assert run("checkpointed", device)


def test_state_and_copies(device):
    result = run("state_and_copies", device)
    assert result["same"] and all(n.startswith("module.") for n in result["names"])


def test_mistakes():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))


def test_futures():
    from tessera.futures import Future, collect_all, wait_all

    first, second = Future(), Future()
    after = first.then(lambda f: f.wait() + 1)
    both = collect_all([first, second])
    first.set_result(1)
    assert after.wait() == 2 and not both.done()
    second.set_result(5)
    assert wait_all([first, second]) == [1, 5] and both.wait() == [first, second]
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        first.set_result(3)
    failed = Future()
    failed.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        failed.then(lambda f: f.value()).wait()
