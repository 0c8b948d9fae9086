"""Runs a statement often enough to time it."""

import enum
import math
import textwrap
import timeit

from .measurement import Measurement, TaskSpec, set_torch_threads


def timer():
    """The time in seconds, when all GPUs are done with their work."""
    import tessera as torch

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement, on one thread unless told, with the GPU's work waited for."""

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

        names = {"torch": torch, **(globals or {})}
        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        self._timer = timeit.Timer(stmt=stmt, setup=setup or "pass", timer=timer, globals=names)
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
        """So many that one measurement takes a thousandth of the time, and the clock is small."""
        number = 1
        while True:
            taken = self._run(number)
            clock = min(self._timer.timer() - self._timer.timer() for _ in range(3)) * -1
            if taken >= min_run_time / 1000 and abs(clock) / taken <= 1e-4:
                return number
            if taken > min_run_time:
                return number
            number *= 10

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Measurements for at least so many seconds."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._number_per_run(min_run_time)
            times, total = [], 0.0
            while total < min_run_time or len(times) < 1:
                taken = self._run(number)
                times.append(taken)
                total += taken
                if callback is not None:
                    callback(number, taken)
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None
    ):
        """Measurements until the spread is below a share of the median, or the time is up."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._number_per_run(0.05)
            times, total = [], 0.0
            rounds = max(1, math.ceil(min_run_time / 0.1))
            while total < max_run_time:
                taken = self._run(number)
                times.append(taken)
                total += taken
                if callback is not None:
                    callback(number, taken)
                if total < min_run_time or len(times) % (3 * rounds):
                    continue
                if Measurement(number, times, self._task_spec).meets_confidence(threshold):
                    break
        return Measurement(number, times, self._task_spec)

    def collect_callgrind(self, *args, **kwargs):
        raise NotImplementedError("Timer.collect_callgrind is not implemented in Tessera yet")
