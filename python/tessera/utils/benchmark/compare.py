"""A table of measurements: a row for each sub-label, a column for each description."""

import enum
import math

from .measurement import Measurement, select_unit, trim_sigfig, unit_to_english

_BEST, _GOOD, _BAD, _WORST = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
_BOLD, _END = "\033[1m", "\033[0m\033[0m"


class Colorize(enum.Enum):
    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _colored(text, value, best):
    """By how much slower it is than the best of its company."""
    if value <= best * 1.01 or value <= best + 1e-7:
        return _BEST + _BOLD + text + _END
    if value <= best * 1.1:
        return _GOOD + _BOLD + text + _END
    if value >= best * 5:
        return _WORST + _BOLD + text + _END
    return _BAD + text + _END if value >= best * 2 else text


class _Column:
    """How the numbers of one column are written: all with the same digits."""

    def __init__(self, cells, scale, trim, highlight):
        found = [m for m in cells if m is not None]
        digits = [math.ceil(math.log10(m.median / scale)) if m.median else 1 for m in found]
        decimals = 1
        if trim:
            decimals = min(max(m.significant_figures - d, 0) for m, d in zip(found, digits))
        self._width = max([1, *digits]) + decimals + (1 if decimals else 0)
        self._decimals, self._scale, self._trim, self._highlight = decimals, scale, trim, highlight

    def text(self, m):
        more = 7 if self._highlight else 0
        if m is None:
            return " " * (self._width + more)
        value = m.median / self._scale
        if self._trim:
            value = trim_sigfig(value, m.significant_figures)
        spread = f" (! {m.iqr / m.median:.0%})" if self._highlight and m.has_warnings else ""
        return f"{value:>{self._width}.{self._decimals}f}{spread:>{more}}"


class Compare:
    """Collects measurements and prints them, a table for each label."""

    def __init__(self, results):
        self._results = []
        self._trim = False
        self._highlight = False
        self._color = Colorize.NONE
        self.extend_results(results)

    def extend_results(self, results):
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(result)} instead."
                )
        self._results.extend(results)

    def trim_significant_figures(self):
        """Shows only the figures that the spread leaves."""
        self._trim = True

    def colorize(self, rowwise=False):
        """Colors what is fast and slow, beside others in its column, or its row."""
        self._color = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self):
        """Marks what was disturbed with its spread."""
        self._highlight = True

    def print(self):
        print(str(self))

    def __str__(self):
        labels = dict.fromkeys(m.task_spec.label for m in self._results)
        merged = Measurement.merge(self._results)
        return "\n".join(
            self._table(label, [m for m in merged if m.task_spec.label == label])
            for label in labels
        )

    def _rows(self, results, columns):
        """(threads, environment, name) and the measurement of each column, in order."""
        found = {}
        for m in results:
            key = m.task_spec.num_threads, m.task_spec.env, m.as_row_name
            found.setdefault(key, {})[m.task_spec.description or ""] = m
        order = sorted(found, key=lambda key: (key[0], key[1] or ""))  # names as they came
        return [(key, [found[key].get(column) for column in columns]) for key in order]

    def _best(self, rows, at, i):
        """The shortest time that a cell is held against."""
        (threads, _, _), cells = rows[at]
        others = cells
        if self._color is Colorize.COLUMNWISE:
            others = [row[i] for key, row in rows if key[0] == threads]
        return min(m.median for m in others if m is not None)

    def _table(self, label, results):
        unit, scale = select_unit(min(m.median for m in results))
        columns = list(dict.fromkeys(m.task_spec.description or "" for m in results))
        rows = self._rows(results, columns)
        writers = [
            _Column([cells[i] for _, cells in rows], scale, self._trim, self._highlight)
            for i in range(len(columns))
        ]
        envs = {key[1] for key, _ in rows}
        longest = max(len(env or "") for env in envs) if len(envs) > 1 else 0
        names, texts, before = [], [], None
        for (threads, env, name), cells in rows:
            shown = f"({env})" if len(envs) > 1 and before != (threads, env) else ""
            before = threads, env
            names.append("  " + shown.ljust(longest + 4) + name)
            texts.append([writer.text(m) for writer, m in zip(writers, cells)])
        first = max(map(len, names))
        widths = [max(len(c), *(len(t[i]) for t in texts)) for i, c in enumerate(columns)]

        def line(start, cells):
            joined = "".join(f"  |  {cell:^{w}}" for cell, w in zip(cells, widths))
            return start.ljust(first) + joined

        header = line("", columns)
        lines = ["[" + f" {label or ''} ".center(len(header) - 2, "-") + "]", header]
        threads = None
        for at, ((number, _, _), cells) in enumerate(rows):
            if number != threads:
                threads = number
                lines.append(f"{number} threads: ".ljust(len(header), "-"))
            shown = [f"{text:^{w}}" for text, w in zip(texts[at], widths)]
            if self._color is not Colorize.NONE:
                shown = [
                    text if m is None else _colored(text, m.median, self._best(rows, at, i))
                    for i, (text, m) in enumerate(zip(shown, cells))
                ]
            lines.append(names[at].ljust(first) + "".join(f"  |  {text}" for text in shown))
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._highlight and any(m.has_warnings for m in results):
            lines.append("(! XX%): the middle half of the times spreads over XX % of the median.")
        return "\n".join(lines) + "\n"
