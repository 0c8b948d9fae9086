"""Programs with several threads. Each runs in a process of its own, so that a hang is a failure."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import KIND

EMULATED = "TESSERA_EMULATOR" in os.environ  # everything takes longer there
FORKS = 1000 if os.environ.get("TESSERA_FULL") else 15 if EMULATED else 100
FOLDER = Path(__file__).resolve().parent / "thread_programs"
START = f"""
import io, os, sys, tempfile, threading, time
import tessera as torch
import tessera.nn.functional as F
from tessera import nn

device = {"cpu" if KIND == "cpu" else "cuda"!r}
steps = {5 if EMULATED else 50}


def side_by_side(*functions):
    failures = []

    def run(f):
        try:
            f()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failures:
        raise failures[0]
"""


def passes(program, timeout=90, **environment):
    """Runs the program; a wrong exit code or a hang fails the test."""
    done = run(["-c", START + textwrap.dedent(program)], timeout, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(arguments, timeout, **environment):
    try:
        return subprocess.run(
            [sys.executable, "-W", "ignore", *map(str, arguments)],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired as late:
        text = b"".join(t for t in (late.stdout, late.stderr) if t).decode(errors="replace")
        pytest.fail(f"hangs: no end after {timeout} seconds\n{text}")


def test_random_numbers_in_two_threads():
    passes("""
        def draw():
            for _ in range(6 * steps):
                assert torch.rand(40_000, device=device).shape == (40_000,)

        side_by_side(draw, draw)
        """)


def test_every_kind_of_draw_side_by_side():
    passes("""
        def draw(f):
            def loop():
                for _ in range(steps):
                    f()
            return loop

        big, small = (200, 200), (5,)
        p = torch.full(big, 0.5, device=device)
        own = torch.Generator(device)
        side_by_side(
            draw(lambda: torch.randn(big, device=device)),
            draw(lambda: torch.randn(small, device=device)),
            draw(lambda: torch.randperm(50_000)),
            draw(lambda: torch.bernoulli(p * 0.5)),
            draw(lambda: (p * 2).normal_().sum().item()),
            draw(lambda: F.dropout(p, 0.5)),
            draw(lambda: torch.randint(0, 9, big, device=device, generator=own)),
            draw(lambda: torch.rand(big, device=device, generator=own)),
            draw(lambda: torch.multinomial(p, 150)),
            draw(lambda: torch.manual_seed(7)),
            draw(lambda: torch.set_rng_state(torch.get_rng_state())),
            draw(lambda: own.set_state(own.get_state())),
            draw(lambda: torch.empty(small).exponential_()),
        )
        """)


def test_dropout_in_two_models_that_train():
    passes("""
        def train():
            model = nn.Sequential(nn.Linear(256, 256), nn.Dropout(0.5), nn.Linear(256, 8))
            model.to(device)
            optimizer = torch.optim.SGD(model.parameters(), 0.01)
            x = torch.ones(256, 256, device=device)
            for _ in range(steps):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()

        side_by_side(train, train)
        """)


def test_a_thread_prepares_batches():
    passes("""
        import queue
        batches = queue.Queue(4)

        def prepare():
            for _ in range(100):
                batches.put(torch.randn(64, 1024))

        def train():
            model = nn.Linear(1024, 64).to(device)
            for _ in range(100):
                F.dropout(model(batches.get().to(device)), 0.1).sum().backward()
            torch.randperm(50_000)

        side_by_side(prepare, train)
        """)


def test_a_daemon_thread_draws_when_the_program_ends():
    passes("""
        def draw():
            while True:
                torch.rand(40_000, device=device)

        threading.Thread(target=draw, daemon=True).start()
        for _ in range(20):
            torch.rand(40_000, device=device)
        """)


def test_one_thread_draws_the_same_numbers_beside_others():
    passes("""
        def numbers(generator):
            return [torch.rand(40_000, generator=generator, device=device).sum().item()
                    for _ in range(20)]

        seeded = lambda: torch.Generator(device).manual_seed(5)
        want, got = numbers(seeded()), []
        side_by_side(
            lambda: got.append(numbers(seeded())),
            lambda: got.append(numbers(seeded())),
            lambda: [torch.rand(40_000, device=device) for _ in range(60)],
        )
        assert got == [want, want]

        # Numbers of one call are consecutive, whatever other threads draw.
        torch.manual_seed(1)
        blocks = [tuple(torch.rand(32_768).tolist()[:3]) for _ in range(40)]
        torch.manual_seed(1)
        drawn = []
        draw = lambda: [drawn.append(tuple(torch.rand(32_768).tolist()[:3])) for _ in range(20)]
        side_by_side(draw, draw)
        assert sorted(drawn) == sorted(blocks)
        """)


def test_random_numbers_training_saving_and_loading_side_by_side():
    passes("""
        folder = tempfile.TemporaryDirectory()
        shared = torch.arange(50_000.0, device=device)

        def draw():
            for _ in range(steps):
                torch.rand(40_000, device=device)
                torch.randn(10, device=device).sum().item()

        def train():
            model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 1))
            model.to(device)
            optimizer = torch.optim.Adam(model.parameters(), 0.01)
            x = torch.randn(600, 64, device=device)
            y = x.sum(1, keepdim=True)
            losses = []
            for _ in range(30):
                optimizer.zero_grad()
                loss = F.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            assert losses[-1] < losses[0]

        def save(to):
            def loop():
                model = nn.Linear(80, 80).to(device)
                for i in range(steps // 2):
                    target = io.BytesIO() if to is None else os.path.join(folder.name, to)
                    value = {"model": model.state_dict(), "pending": shared * i, "number": i}
                    torch.save(value, target)
                    if to is None:
                        target.seek(0)
                    back = torch.load(target)
                    assert back["number"] == i
                    assert torch.equal(back["pending"], shared * i)
                    assert torch.equal(back["model"]["weight"], model.weight)
            return loop

        side_by_side(draw, train, train, save(None), save("a.pt"), save("b.pt"))
        """)


@pytest.mark.limit(120 + 2 * FORKS)
def test_children_of_a_fork_beside_threads_end():
    program = [FOLDER / "fork_stress.py", FORKS, "cpu" if KIND == "cpu" else "cuda"]
    done = run(program, 60 + 2 * FORKS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workers_of_a_loader_start_beside_a_training_thread():
    passes("""
        from tessera.utils.data import DataLoader, Dataset

        class Samples(Dataset):
            def __len__(self):
                return 64

            def __getitem__(self, i):
                return torch.rand(40) + (torch.ones(40) * i).cumsum(0)[0]

        stopping = threading.Event()

        def train():
            model = nn.Sequential(nn.Linear(300, 300), nn.Dropout(0.5), nn.Linear(300, 8))
            model.to(device)
            x = torch.randn(200, 300, device=device)
            while not stopping.is_set():
                model(x * 2 + 1).sum().backward()

        def load():
            try:
                for _ in range(6):
                    assert sum(len(b) for b in DataLoader(Samples(), 8, num_workers=2)) == 64
            finally:
                stopping.set()

        side_by_side(train, load)
        """)


@pytest.mark.skipif(KIND != "virtual", reason="needs a slow copy")
def test_a_download_does_not_stop_uploads_of_other_threads():
    # The download takes two seconds; uploads take none.
    passes(
        """
        down = torch.ones(5 << 18, device="cuda")
        host = torch.empty(5 << 18).pin_memory()
        source = torch.ones(100).pin_memory()
        side = torch.cuda.Stream()
        torch.cuda.synchronize()
        waiting, ended = threading.Event(), []

        def download():
            with torch.cuda.stream(side):
                host.copy_(down, non_blocking=True)
            waiting.set()
            assert host[-1].item() == 1
            ended.append(time.monotonic())

        def upload():
            waiting.wait()
            time.sleep(0.2)
            for _ in range(300):
                source.to("cuda", non_blocking=True)
            ended.append(time.monotonic())
            ended.append("upload")

        side_by_side(download, upload)
        assert ended[1] == "upload", ended
        """,
        TESSERA_VIRTUAL_BANDWIDTH="d2h=2.6e-3",
    )


@pytest.mark.skipif(KIND != "virtual", reason="needs a slow copy")
def test_two_threads_wait_for_one_download():
    passes(
        """
        for _ in range(5):
            down = torch.arange(1 << 18, device="cuda").float()
            host = torch.zeros(1 << 18).pin_memory()
            host.copy_(down, non_blocking=True)
            sums = []
            wait = lambda: sums.append(host.double().sum().item())
            side_by_side(wait, wait, wait)
            assert sums == [(1 << 18) * ((1 << 18) - 1) / 2] * 3, sums
        """,
        TESSERA_VIRTUAL_BANDWIDTH="d2h=1e-2",
    )
