"""Runs a statement often enough to time it."""

import ast
import enum
import statistics
import textwrap
import timeit

from .measurement import Measurement, TaskSpec, set_torch_threads


def timer():
    """The time in seconds, when all work is done: what waits, and what GPUs have."""
    import tessera as torch

    torch.fuse.run()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return timeit.default_timer()


def _run_at_once(stmt):
    """The statement, and then a call that starts what it left pending.

    Deferred work that nobody reads is never done, and here nobody does: `a + b` would take no time.
    So the value of a last expression is kept until the call.
    """
    try:
        tree = ast.parse(stmt)
    except SyntaxError:
        return stmt  # timeit says what is wrong
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body.pop()
        kept = ast.Assign([ast.Name("_tessera_value", ast.Store())], last.value)
        tree.body.append(kept)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n_tessera_run()"


def _plain(code):
    """Dedented, without the line breaks around it."""
    return textwrap.dedent(code).strip("\n").rstrip()


class Language(enum.Enum):
    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement, on one thread unless told, with the GPU's work waited for.

    Each run's work is started before the next; all of it is done when a measurement ends.
    """

    def __init__(
        self,
        stmt="pass",
        setup="pass",
        global_setup="",
        timer=timer,
        globals=None,
        label=None,
        sub_label=None,
        description=None,
        env=None,
        num_threads=1,
        language=Language.PYTHON,
    ):
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("Timer(language='c++') is not implemented in Tessera yet")
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        import tessera as torch

        names = {**(globals or {})}
        names.setdefault("torch", torch)
        stmt, setup = _plain(stmt), _plain(setup)
        run = stmt
        if stmt not in ("", "pass") and torch.fuse.mode() != "off":
            names["_tessera_run"] = torch.fuse.run
            run = _run_at_once(stmt)
        self._timer = timeit.Timer(run or "pass", setup or "pass", timer=timer, globals=names)
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _run(self, number):
        """Seconds of so many runs."""
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number=1_000_000):
        """One measurement of so many runs, after a few to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._run(max(number // 100, 2))
            return Measurement(number, [self._run(number)], self._task_spec)

    def _number_per_run(self, min_run_time):
        """So many that a measurement takes a thousandth of the time, and the clock little of it."""
        clock = statistics.median(self._timer.timeit(0) for _ in range(5))
        number = 1
        while True:
            taken = self._run(number)
            long_enough = taken >= min_run_time / 1000 and clock / taken <= 1e-4
            if long_enough or taken > min_run_time or number * 10 > 2**31:
                return number
            number *= 10

    def _measure(self, number, enough, min_run_time, max_run_time, callback):
        """Measurements for so long and until they are enough."""
        times, total, done = [], 0.0, False
        while total < min_run_time or not done:
            taken = self._run(number)
            times.append(taken)
            total += taken
            if callback is not None:
                callback(number, taken)
            done = enough(times)
            if max_run_time is not None and total > max_run_time:
                break
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Measurements for at least so many seconds."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._number_per_run(min_run_time)
            return self._measure(number, lambda times: True, min_run_time, None, callback)

    def adaptive_autorange(
        self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None
    ):
        """Measurements until the spread is below a share of the median, or the time is up."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._number_per_run(0.05)

            def enough(times):
                so_far = Measurement(number, times, self._task_spec)
                return len(times) > 3 and so_far.meets_confidence(threshold)

            return self._measure(number, enough, min_run_time, max_run_time, callback)

    def collect_callgrind(self, *args, **kwargs):
        raise NotImplementedError("Timer.collect_callgrind is not implemented in Tessera yet")
