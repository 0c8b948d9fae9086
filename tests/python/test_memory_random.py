"""Random programs on a small virtual GPU: what deferral holds, and what is left when memory is out.

Each program is compared with the same statements on the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import KIND

import tessera as torch

pytestmark = pytest.mark.skipif(KIND == "cuda", reason="starts a virtual GPU of its own")

PROGRAM = r'''
import random
import sys

import tessera as torch
from tessera import _C, fuse

KIB = 1024
SIDES = (64, 128, 192)  # 16, 64 and 144 KiB


def new(n, value):
    return torch.full((n, n), value, device="cuda"), torch.full((n, n), value)


class Program:
    """The same statements on the device and on the CPU, whose numbers are small integers."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pairs = []
        self.failures = 0

    def pick(self, n=None):
        found = [p for p in self.pairs if n is None or p[0].shape[0] == n]
        return self.random.choice(found) if found else None

    def attempt(self, on_device, on_host):
        """Runs a statement on the host too if it did not run out of memory on the device."""
        try:
            result = on_device()
        except torch.cuda.OutOfMemoryError:
            self.failures += 1
            return None
        return result, on_host()

    def keep(self, pair):
        if pair is not None:
            self.pairs.append(pair)

    def statement(self):
        r = self.random
        what = r.randrange(100)
        if what < 10 or not self.pairs:
            n, value = r.choice(SIDES), float(r.randrange(1, 4))
            self.keep(self.attempt(lambda: new(n, value)[0], lambda: new(n, value)[1]))
            return
        x, x_host = self.pick()
        y, y_host = self.pick(x.shape[0])
        if what < 30:
            self.keep(self.attempt(lambda: x * 2 - y, lambda: x_host * 2 - y_host))
        elif what < 40:
            chain = lambda a, b: ((a + 1) * (b - 1)).remainder(7) + a.remainder(5)
            self.keep(self.attempt(lambda: chain(x, y), lambda: chain(x_host, y_host)))
        elif what < 47:
            work = lambda a: (a.sum(1, keepdim=True) + a).remainder(11)
            self.keep(self.attempt(lambda: work(x), lambda: work(x_host)))
        elif what < 53:  # an operator that runs at once
            work = lambda a: a.remainder(3).t().flip(0)
            self.keep(self.attempt(lambda: work(x), lambda: work(x_host)))
        elif what < 58:
            n = x.shape[0] // 2
            work = lambda a: a[:n, :n].contiguous().repeat(2, 2)
            self.keep(self.attempt(lambda: work(x), lambda: work(x_host)))
        elif what < 70:
            if r.random() < 0.3:
                self.attempt(lambda: x.remainder_(13), lambda: x_host.remainder_(13))
            else:
                self.attempt(lambda: x.sub_(y), lambda: x_host.sub_(y_host))
        elif what < 75:
            work = lambda a, b: a[1:].copy_(b[:-1] + 1)
            if x is not y:
                self.attempt(lambda: work(x, y), lambda: work(x_host, y_host))
        elif what < 80:
            work = lambda a, b: torch.add(a, b, out=b)
            self.attempt(lambda: work(x, y), lambda: work(x_host, y_host))
        elif what < 84:
            self.check(x, x_host)
        elif what < 86:
            self.attempt(torch.cuda.synchronize, lambda: None)
        else:
            for _ in range(r.randrange(1, 4)):
                if self.pairs:
                    self.pairs.pop(r.randrange(len(self.pairs)))

    def check(self, x, x_host):
        values = self.attempt(lambda: x.cpu(), lambda: x_host)
        if values:
            assert torch.equal(*values), (values[0].flatten()[:5], values[1].flatten()[:5])
        return values is not None

    def finish(self):
        for pair in self.pairs:
            self.check(*pair)
        self.pairs.clear()


def run(seed, statements, after=None):
    program = Program(seed)
    for _ in range(statements):
        program.statement()
        if after:
            after()
    return program


def peaks(seeds):
    """Without a lack of memory: the eager figures at every statement, and never more in use."""
    lower = 0
    for seed in seeds:
        figures = {}
        for mode in ("off", "on"):
            fuse.set_mode(mode)
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            start = torch.cuda.memory_allocated()
            seen = []
            program = run(seed, 60, lambda: seen.append(torch.cuda.memory_allocated() - start))
            torch.cuda.synchronize()
            peak = torch.cuda.memory_stats()["active_bytes.all.peak"] - start
            figures[mode] = seen, peak, _C._cuda_usage(0)["peak"] - start
            program.finish()
            assert program.failures == 0
            del program
        off, on = figures["off"], figures["on"]
        assert on[0] == off[0], seed
        assert on[2] == off[2], (seed, on[2], off[2])
        assert on[1] <= off[1], (seed, on[1], off[1])
        lower += on[1] < off[1]
    assert lower > len(seeds) // 10, lower


def shortage(seeds):
    """With a lack of memory: each value is right or raises, and all memory comes back."""
    failures = 0
    for seed in seeds:
        program = run(seed, 150)
        failures += program.failures
        pairs, program.pairs = program.pairs, []
        count = 0
        while pairs:
            if len(pairs) == count:  # there is room once another one is gone
                assert count > 1, seed
                pairs.pop()
            count = len(pairs)
            pairs = [pair for pair in pairs if not program.check(*pair)]
        pair = None
        del pair, program
        try:
            torch.cuda.synchronize()
        except torch.cuda.OutOfMemoryError:
            raise AssertionError("nothing is left that could fail")
        assert torch.cuda.memory_allocated() == 0, (seed, torch.cuda.memory_allocated())
        assert _C._cuda_usage(0)["real"] == 0 and fuse.stats()["pending"] == 0
        assert _C._cuda_usage(0)["unstored"] == 0
    print(failures, "failures")
    assert failures > len(seeds)


seeds = range(int(sys.argv[2]), int(sys.argv[3]))
{"peaks": peaks, "shortage": shortage}[sys.argv[1]](seeds)
'''


def run(tmp_path, what, gpu, first, last):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    settings = {"TESSERA_VIRTUAL_GPU": gpu, "TESSERA_FUSE": "1", "OMP_NUM_THREADS": "1"}
    settings["PYTHONPATH"] = str(Path(torch.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(path), what, str(first), str(last)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_memory_in_use_is_never_above_that_of_eager_execution(tmp_path):
    run(tmp_path, "peaks", "1x256MiB", 0, 60)


def test_values_are_right_or_raise_where_memory_is_short(tmp_path):
    run(tmp_path, "shortage", "1x3MiB", 0, 40)
