"""torch.utils.benchmark: what it measures and prints."""

import itertools

import pytest

import tessera as torch
from tessera.utils import benchmark

SETUP = "a = torch.ones(8, 8); b = torch.ones(8, 8)"


def measurement(times, number=10, **names):
    spec = benchmark.TaskSpec("a + b", "pass", **names)
    return benchmark.Measurement(number, times, spec)


def test_timeit_and_autorange():
    timer = benchmark.Timer("torch.mm(a, b)", SETUP, label="mm", sub_label="8", description="f")
    once = timer.timeit(20)
    assert once.number_per_run == 20 and len(once.times) == 1 and 0 < once.median < 1
    assert str(once).splitlines()[1:4] == ["mm: 8", "f", "setup: " + SETUP]
    assert str(once).endswith("1 measurement, 20 runs , 1 thread")
    several = timer.blocked_autorange(min_run_time=0.01)
    assert sum(several.raw_times) >= 0.01 and "Median: " in str(several) or len(several.times) == 1
    assert timer.adaptive_autorange(max_run_time=0.05).median > 0


def test_globals_and_threads():
    seen = []

    def count():
        seen.append(torch.get_num_threads())

    before = torch.get_num_threads()
    benchmark.Timer("count()", globals={"count": count}, num_threads=1).timeit(3)
    assert set(seen) == {1} and len(seen) >= 3 and torch.get_num_threads() == before
    with pytest.raises(NotImplementedError):
        benchmark.Timer("x;", language="c++")
    with pytest.raises(ValueError):
        benchmark.Timer(count)


def test_numbers_of_a_measurement():
    m = measurement([1e-4, 2e-4, 3e-4, 4e-4])
    assert m.times == pytest.approx([1e-5, 2e-5, 3e-5, 4e-5])
    assert m.median == pytest.approx(2.5e-5) and m.mean == pytest.approx(2.5e-5)
    assert m.iqr == pytest.approx(1.5e-5)
    assert m.has_warnings and not m.meets_confidence()
    text = str(m)
    assert "  Median: 25.00 us\n  IQR:    15.00 us (17.50 to 32.50)" in text
    assert "4 measurements, 10 runs per measurement, 1 thread" in text and "WARNING" in text
    steady = measurement([1e-4, 1e-4, 1e-4])
    assert not steady.has_warnings and steady.significant_figures == 2  # the clock has 25 ns
    assert measurement([1.0] * 3).significant_figures == 4 and m.significant_figures == 1
    assert "IQR" not in str(measurement([1e-4, 2e-4])) and "Median" in str(measurement([1, 2]))
    assert benchmark.select_unit(0.02) == ("ms", 1e-3)
    assert benchmark.select_unit(90) == ("s", 1.0)
    assert benchmark.trim_sigfig(1234.5, 2) == 1200


def test_table():
    rows = [
        measurement([5.7e-5], label="mm", sub_label="64", description="f"),
        measurement([1.8e-5], label="mm", sub_label="64", description="g"),
        measurement([3.0e-5], label="mm", sub_label="256", description="g", num_threads=2),
    ]
    lines = str(benchmark.Compare(rows)).splitlines()
    assert lines[0].startswith("[-") and " mm " in lines[0]
    assert [cell.strip() for cell in lines[1].split("|")] == ["", "f", "g"]
    assert lines[2].startswith("1 threads: --")
    assert [cell.strip() for cell in lines[3].split("|")] == ["64", "5.7", "1.8"]
    assert [cell.strip() for cell in lines[5].split("|")] == ["256", "", "3.0"]
    assert lines[-1] == "Times are in microseconds (us)."
    with pytest.raises(ValueError):
        benchmark.Compare([1])


# PyTorch 2.15's, of the same measurements.
TABLE = """\
[------------------ mm -----------------]
                 |   f    |  a longer one
1 threads: ------------------------------
  (base)    64   |   1.2  |       2.4    
            128  |   3.6  |       4.8    
  (branch)  64   |  10.8  |      12.0    
            128  |  13.2  |      14.4    
4 threads: ------------------------------
  (base)    64   |   6.0  |       7.2    
            128  |   8.4  |       9.6    
  (branch)  64   |  15.6  |      16.8    
            128  |  18.0  |      19.2    

Times are in microseconds (us).
"""  # noqa: W291


def test_tables_are_pytorchs():
    rows = []
    for env, n, sub, name in itertools.product(
        ("base", "branch"), (1, 4), ("64", "128"), ("f", "a longer one")
    ):
        k = 1e-5 * (1 + len(rows))
        names = dict(label="mm", sub_label=sub, description=name, env=env, num_threads=n)
        rows.append(measurement([k, 1.3 * k, 1.1 * k, 1.6 * k], **names))
    compare = benchmark.Compare(rows)
    assert str(compare) == TABLE
    compare.trim_significant_figures()
    compare.highlight_warnings()
    lines = str(compare).splitlines()
    assert lines[3] == "  (base)    64   |   1 (! 25%)  |    2 (! 25%) "
    assert lines[9] == "            128  |   8 (! 25%)  |   10 (! 25%) "
    compare.colorize()
    lines = str(compare).splitlines()
    best, bad, worst, end = (
        "\x1b[92m\x1b[1m",
        "\x1b[2m\x1b[91m",
        "\x1b[31m\x1b[1m",
        "\x1b[0m\x1b[0m",
    )
    assert lines[3] == f"  (base)    64   |  {best} 1 (! 25%){end}  |  {best}  2 (! 25%) {end}"
    assert lines[4] == f"            128  |  {bad} 4 (! 25%){end}  |  {bad}  5 (! 25%) {end}"
    assert worst in lines[5] and lines[9] == "            128  |   8 (! 25%)  |   10 (! 25%) "
    compare.colorize(rowwise=True)
    assert str(compare).splitlines()[4].count(best) == 1


def test_statements_of_many_lines():
    spec = benchmark.TaskSpec("x=a+b\ny=x*2", "a=1\nb=2")
    assert spec.summarize() == "stmt:\n  x=a+b\n  y=x*2\n\nsetup:\n  a=1\n  b=2\n"
    assert benchmark.TaskSpec("x=1", "pass", sub_label="s").title == "x=1: s"


def test_work_that_nobody_reads_is_timed(device):
    """Deferred results that are dropped are never computed: a timer must have them computed."""
    n = 1 << 20
    before = torch.fuse.stats()["groups"]
    timer = benchmark.Timer("a + 1", f"a = torch.ones({n}, device='{device}')")
    taken = timer.timeit(100).median
    assert torch.fuse.mode() == "off" or torch.fuse.stats()["groups"] - before >= 100
    assert taken > n * 4 / 1e13  # no memory is that fast


def test_memory_summary(accelerator):
    x = torch.ones(1000, 1000, device=accelerator)
    text = torch.cuda.memory_summary()
    assert "CUDA OOMs: " in text and "device ID 0" in text and "Allocated memory" in text
    assert len({len(line) for line in text.splitlines()}) == 1
    assert f"{torch.cuda.memory_allocated() // 1024} KiB" in text
    assert torch.cuda.memory.memory_summary(0) == torch.cuda.memory_summary(0)
    del x
