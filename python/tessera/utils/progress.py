"""A progress bar for loops.

    for batch in progress(loader, "epoch 1"):
        ...

prints one line that is written over, with how much is done, how fast, and how long it will take. It
is quiet where nobody looks: when the output is no terminal.
"""

import sys
import time


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes:02d}:{seconds:02d}"


def _speed(per_second, unit):
    if per_second >= 1:
        return f"{per_second:.4g} {unit}/s"
    return f"{1 / per_second:.3g} s/{unit}" if per_second > 0 else f"? {unit}/s"


class progress:
    """Iterates over something and shows how far it is."""

    def __init__(
        self, iterable=None, desc="", total=None, *, unit="it", file=None, interval=0.1, width=24
    ):
        self.iterable = iterable
        self.desc = desc
        self.unit = unit
        if total is None:
            try:
                total = len(iterable)
            except TypeError:
                total = None
        self.total = total
        self.done = 0
        self._file = sys.stderr if file is None else file
        isatty = getattr(self._file, "isatty", None)
        self._shown = bool(isatty and isatty())
        self._interval = interval
        self._width = width
        self._notes = ""
        self._length = 0
        self._start = self._last = time.monotonic()

    def __len__(self):
        if self.total is None:
            raise TypeError("the length of what progress() iterates over is not known")
        return self.total

    def __iter__(self):
        try:
            for item in self.iterable:
                yield item
                self.update()
        finally:
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def update(self, n=1):
        """So many more are done."""
        self.done += n
        if self._shown:
            now = time.monotonic()
            if now - self._last >= self._interval:
                self._last = now
                self._write(self.text(now))

    def set_postfix(self, **values):
        """Numbers to show behind the bar: loss=0.25."""
        self._notes = ", ".join(
            f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items()
        )

    def text(self, now=None):
        """The line as it stands."""
        passed = max((time.monotonic() if now is None else now) - self._start, 1e-9)
        per_second = self.done / passed
        parts = [self.desc + ":"] if self.desc else []
        if self.total:
            share = min(1.0, self.done / self.total)
            filled = int(share * self._width)
            left = _clock((self.total - self.done) / per_second) if per_second else "?"
            parts.append(f"{share:4.0%} [{'#' * filled}{'.' * (self._width - filled)}]")
            parts.append(f"{self.done}/{self.total}, {_clock(passed)} passed, {left} left")
        else:
            parts.append(f"{self.done} {self.unit}, {_clock(passed)} passed")
        parts.append(_speed(per_second, self.unit))
        if self._notes:
            parts.append(self._notes)
        return " ".join(parts[:2]) + ", " + ", ".join(parts[2:]) if len(parts) > 2 else parts[0]

    def _write(self, line):
        self._file.write("\r" + line.ljust(self._length))
        self._file.flush()
        self._length = len(line)

    def close(self):
        """The last line, with its end."""
        if self._shown:
            self._write(self.text())
            self._file.write("\n")
            self._file.flush()
            self._shown = False
