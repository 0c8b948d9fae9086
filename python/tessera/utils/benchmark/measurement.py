"""What was timed, and the times."""

import contextlib
import dataclasses
import math
import statistics
import textwrap

_UNITS = (
    (1e-9, "ns", "nanosecond"),
    (1e-6, "us", "microsecond"),
    (1e-3, "ms", "millisecond"),
    (1.0, "s", "second"),
)


def select_unit(seconds):
    """The unit in which a time is easy to read, and its length in seconds."""
    exponent = min(max(int(math.log10(seconds) // 3), -3), 0) if seconds > 0 else 0
    scale, name, _ = _UNITS[exponent + 3]
    return name, scale


def unit_to_english(unit):
    return next(english for _, name, english in _UNITS if name == unit)


def trim_sigfig(value, figures):
    """The number with so many significant figures."""
    if value == 0:
        return 0.0
    return round(value, figures - 1 - math.floor(math.log10(abs(value))))


@contextlib.contextmanager
def set_torch_threads(n):
    """Within it, the CPU uses n threads."""
    import tessera as torch

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(n)
        yield
    finally:
        torch.set_num_threads(before)


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """A statement to time, and the names that tables show it under."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """The label; without one, the statement."""
        if self.label is None and "\n" in self.stmt:
            named = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{named}\n{textwrap.indent(self.stmt, '  ')}\n"
        return (self.label or self.stmt) + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self):
        if self.setup in ("", "pass"):
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}\n"
        return f"setup: {self.setup}"

    def summarize(self):
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(part for part in parts if part)


def _quantile(ordered, share):
    """Between the two nearest of sorted values."""
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


class Measurement:
    """Times of one task: each of raw_times is that of number_per_run runs, in seconds."""

    def __init__(self, number_per_run, raw_times, task_spec, metadata=None):
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.task_spec = task_spec
        self.metadata = metadata

    def __getattr__(self, name):
        """Names of the task: label, num_threads, title..."""
        if name == "task_spec":
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @property
    def times(self):
        """Seconds of one run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def mean(self):
        return statistics.fmean(self.times)

    @property
    def _quartiles(self):
        ordered = sorted(self.times)
        return _quantile(ordered, 0.25), _quantile(ordered, 0.75)

    @property
    def iqr(self):
        """The width in which the middle half of the times lies."""
        low, high = self._quartiles
        return high - low

    @property
    def significant_figures(self):
        """How many figures of the median the spread leaves; at least one, at most four.

        The middle half of the times is taken for normal: its mean lies within 1.645 standard errors
        nine times in ten. No clock is better than 25 ns.
        """
        ordered = sorted(self.times)
        n = len(ordered)
        middle = ordered[n // 4 : math.ceil(3 * n / 4)]
        error = 1.645 * statistics.pstdev(middle) / math.sqrt(len(middle))
        return min(max(math.floor(math.log10(self.median / max(error, 25e-9))), 1), 4)

    @property
    def has_warnings(self):
        """Is the spread over a tenth of the median?"""
        return not self.meets_confidence()

    def meets_confidence(self, threshold=0.1):
        return self.iqr / self.median < threshold

    @property
    def title(self):
        return self.task_spec.title

    @property
    def env(self):
        return self.task_spec.env or "Unspecified env"

    @property
    def as_row_name(self):
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @staticmethod
    def merge(measurements):
        """Those of equal tasks as one each."""
        groups = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).append(m)
        return [
            Measurement(1, [t for m in group for t in m.times], spec)
            for spec, group in groups.items()
        ]

    def __repr__(self):
        unit, scale = select_unit(self.median)
        spec = self.task_spec
        runs = f"{self.number_per_run} run{'s' if self.number_per_run > 1 else ''}"
        threads = f"{spec.num_threads} thread{'s' if spec.num_threads > 1 else ''}"
        head = f"<{type(self).__module__}.{type(self).__name__} object at {id(self):#x}>"
        lines = [head, spec.summarize()]
        if len(self.raw_times) == 1:
            lines += [f"  {self.median / scale:.2f} {unit}", f"  1 measurement, {runs} , {threads}"]
            return "\n".join(lines)
        low, high = self._quartiles
        lines.append(f"  Median: {self.median / scale:.2f} {unit}")
        if len(self.raw_times) > 2:
            span = f"({low / scale:.2f} to {high / scale:.2f})"
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} {span}")
        lines.append(f"  {len(self.raw_times)} measurements, {runs} per measurement, {threads}")
        if self.has_warnings:
            share = self.iqr / self.median
            lines.append(
                f"  WARNING: Interquartile range is {share:.1%} of the median measurement.\n"
                "           " + ("Other work disturbed it." if share > 0.25 else "Times vary.")
            )
        return "\n".join(lines)
