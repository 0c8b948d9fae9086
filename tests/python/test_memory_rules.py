"""Deferred work and memory that is out, on virtual GPUs of a few MiB, each in its own process.

Writes are reserved when they are recorded, a plain result needs memory only when its value is
needed, and a failed run affects only the results that could not be stored."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import KIND

import tessera as torch

pytestmark = pytest.mark.skipif(KIND == "cuda", reason="starts a virtual GPU of its own")

BEGIN = """
import gc

import tessera as torch
from tessera import _C, fuse, nn

MiB = 2**20
kept = []


def full(mib, value):
    return torch.full((mib * MiB // 4,), float(value), device="cuda")


def raises(work, line=None):
    try:
        work()
    except torch.cuda.OutOfMemoryError as error:
        text = str(error)
        assert text.startswith("CUDA out of memory. Tried to allocate"), text
        if line:
            assert f"deferred at {__file__}:{line}." in text, text
        return text
    raise AssertionError("it did not raise")


def allocated():
    return torch.cuda.memory_allocated() / MiB


def line_of(text):
    lines = open(__file__).read().splitlines()
    found = [i + 1 for i, line in enumerate(lines) if line.strip() == text]
    assert len(found) == 1, (text, found)
    return found[0]
"""


def run(tmp_path, program, gpu="1x64MiB", **environment):
    path = tmp_path / "program.py"
    path.write_text(BEGIN + textwrap.dedent(program))
    package = str(Path(torch.__file__).parents[1])
    settings = {"TESSERA_VIRTUAL_GPU": gpu, "TESSERA_FUSE": "1", **environment}
    settings |= {"PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_optimizers_step_raises_and_changes_nothing(tmp_path):
    run(
        tmp_path,
        """
        from functools import partial

        sgd = partial(torch.optim.SGD, lr=0.1, momentum=0.9, dampening=0.5)
        for make in (torch.optim.Adam, torch.optim.RMSprop, sgd):
            model = nn.Linear(1500, 1500).cuda()
            optimizer = make(model.parameters())
            x = torch.rand(8, 1500).cuda()
            model(x).sum().backward()
            held = full(64 - 25, 1)
            torch.cuda.synchronize()
            before = [p.detach().cpu().clone() for p in model.parameters()]
            used = torch.cuda.memory_allocated()
            raises(optimizer.step)
            raises(optimizer.step)
            for p, b in zip(model.parameters(), before):
                assert torch.equal(p.cpu(), b)
            torch.cuda.synchronize()
            assert torch.cuda.memory_allocated() == used
            assert torch.equal(held[:5].cpu(), torch.ones(5))
            torch.save(model.state_dict(), __file__ + ".pt")
            saved = torch.load(__file__ + ".pt", map_location="cpu")
            assert torch.equal(saved["weight"].cpu(), model.weight.cpu())
            torch.cuda.synchronize()
            del held
            optimizer.step()
            torch.cuda.synchronize()
            assert not torch.equal(model.weight.cpu(), before[0])
            del model, optimizer, x, p, saved
            gc.collect()
            assert allocated() < 1, allocated()
        """,
    )


@pytest.mark.parametrize("fused", ["0", "1"])
def test_a_step_after_a_failed_one_is_that_of_one_that_did_not_fail(tmp_path, fused):
    run(
        tmp_path,
        """
        def trained(fail):
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(600, 600), nn.ReLU(), nn.Linear(600, 600)).cuda()
            optimizer = torch.optim.AdamW(model.parameters())
            x = torch.rand(8, 600).cuda()
            for step in range(3):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                if fail and step == 0:
                    held = full(64 - 10, 1)
                    torch.cuda.synchronize()
                    raises(optimizer.step)
                    del held
                optimizer.step()
            return [p.detach().cpu() for p in model.parameters()]

        for a, b in zip(trained(False), trained(True)):
            assert torch.equal(a, b)
        """,
        TESSERA_FUSE=fused,
    )


def test_writes_are_reserved(tmp_path):
    run(
        tmp_path,
        """
        x, y = full(20, 1), full(20, 2)
        torch.cuda.synchronize()
        z = x * 2
        w = y * 2
        assert fuse.stats()["pending"] == 2 and allocated() == 80
        # In place: z takes the memory that is left, and its own value stays.
        version = z._version
        raises(lambda: z.add_(w), line_of("w = y * 2"))
        assert z._version == version
        z.add_(x)
        assert z[7].item() == 3
        # out=
        raises(lambda: torch.add(w, w, out=x), line_of("w = y * 2"))
        assert x[0].item() == 1
        # A write to what a result that does not fit still reads.
        raises(lambda: y.mul_(3), line_of("w = y * 2"))
        assert y[0].item() == 2
        del z
        y.mul_(3)
        assert w[0].item() == 4 and y[0].item() == 6
        torch.cuda.synchronize()
        """,
    )


def test_a_reserved_write_keeps_its_room(tmp_path):
    run(
        tmp_path,
        """
        x = full(16, 1)
        torch.cuda.synchronize()
        z = x * 2
        w = x * 3
        z.add_(w)  # 48 MiB are needed
        del w
        more = [x + i for i in range(4)]  # plain results that exceed the device
        raises(torch.cuda.synchronize)
        assert z[3].item() == 5
        del more
        z.add_(x * 4)
        big = torch.empty(20 * MiB // 4, device="cuda")  # taken while the write is pending
        assert z[3].item() == 9
        """,
    )


def test_gradients_accumulate_or_the_line_raises(tmp_path):
    run(
        tmp_path,
        """
        p = nn.Parameter(full(12, 1))
        (p * 2).sum().backward()
        torch.cuda.synchronize()
        held = full(34, 1)
        torch.cuda.synchronize()
        scale = full(12, 3)
        raises(lambda: (p * scale).sum().backward())
        assert p.grad[5].item() == 2 and p[5].item() == 1
        del held
        (p * scale).sum().backward()
        assert p.grad[5].item() == 5
        """,
    )


def test_a_plain_result_needs_memory_only_when_it_is_read(tmp_path):
    run(
        tmp_path,
        """
        x = full(20, 1)
        torch.cuda.synchronize()
        results = []
        for i in range(7):
            results.append(x + i)
        assert allocated() == 160
        assert torch.cuda.memory_stats()["active_bytes.all.peak"] == 20 * MiB
        assert results[0][0].item() == 1 and results[6][1].item() == 7
        raises(lambda: results[3][0].item(), line_of("results.append(x + i)"))
        assert results[0][5].item() == 1
        results[6] = None
        assert results[3][0].item() == 4
        """,
    )


# Fourteen operators, seven results that the program holds, nothing that reads one.
LOOP = """
a, b, c = (torch.rand(512, 512, device="cuda") for _ in range(3))
torch.cuda.synchronize()
for _ in range(60):
    y0 = a + b
    y1 = y0 + c
    y2 = y1 * a
    y3 = y2 - b
    y4 = y2 + y3
    y5 = 0.33 * a + 0.66 * b + c * 0.9
    y = y4 + y5
"""


def test_results_that_nothing_reads_take_no_memory(tmp_path):
    run(
        tmp_path,
        LOOP
        + """
assert torch.cuda.memory_stats()["active_bytes.all.peak"] == 3 * MiB
assert allocated() == 10
del y0, y1, y2, y3, y4, y5
expected = (a + b + c) * a
expected = expected + (expected - b) + (0.33 * a + 0.66 * b + c * 0.9)
assert torch.equal(y.cpu(), expected.cpu())
""",
        gpu="1x8MiB",
    )


def test_a_failed_run_affects_only_what_could_not_be_stored(tmp_path):
    run(
        tmp_path,
        """
        x = full(12, 1)
        torch.cuda.synchronize()
        results = [x + i for i in range(6)]
        late = x[:100] * 7  # it fits, though it comes after
        raises(torch.cuda.synchronize)
        torch.cuda.synchronize()
        torch.cuda.synchronize()
        torch.cuda.current_stream().synchronize()
        fuse.run()
        stored = []
        for i, r in enumerate(results):
            try:
                assert r[1].item() == 1 + i
                stored.append(r)
            except torch.cuda.OutOfMemoryError:
                pass
        assert len(stored) == 4, len(stored)
        assert late[5].item() == 7
        torch.save([x, *stored], __file__ + ".pt")
        assert torch.load(__file__ + ".pt", map_location="cpu")[1][0].item() == 1
        # Other streams and threads go on.
        with torch.cuda.stream(torch.cuda.Stream()):
            assert (late + 1).sum().item() == 800
        import threading
        sums = []
        thread = threading.Thread(target=lambda: sums.append((late + 2).sum().item()))
        thread.start()
        thread.join()
        assert sums == [900.0]
        # Hundreds of operators later the rest can still be read.
        y = late
        for _ in range(600):
            y = y + 1
        assert y[0].item() == 607
        del stored, r
        for i in range(4):
            results[i] = None
        assert [r[2].item() for r in results[4:]] == [5, 6]
        del results, x, y, late
        gc.collect()
        assert allocated() == 0 and fuse.stats()["pending"] == 0
        """,
    )


def test_pressure_runs_work_that_frees_inputs(tmp_path):
    run(
        tmp_path,
        """
        x = full(30, 1)
        torch.cuda.synchronize()
        sums = [(x * i).sum() for i in range(3)]
        del x
        y = torch.empty(40 * MiB // 4, device="cuda")
        assert [s.item() for s in sums] == [30 * MiB // 4 * i for i in range(3)]
        """,
    )


def test_saving_lets_go_of_what_it_saved(tmp_path):
    run(
        tmp_path,
        """
        gc.disable()
        x = full(1, 1)
        torch.save([x], __file__ + ".pt")
        del x
        assert allocated() == 0
        """,
    )
