"""A table of measurements: a row for each sub-label, a column for each description."""

from .measurement import Measurement, select_unit, trim_sigfig, unit_to_english


class Compare:
    """Collects measurements and prints them, a table for each label."""

    def __init__(self, results):
        self._results = []
        self._trim = False
        self._highlight = False
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
        """Accepted; the tables are plain."""

    def highlight_warnings(self):
        """Marks what was disturbed with (!)."""
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

    def _cell(self, m, scale):
        if m is None:
            return ""
        value = m.median / scale
        text = f"{trim_sigfig(value, m.significant_figures):g}" if self._trim else f"{value:.1f}"
        return text + (" (!)" if self._highlight and m.has_warnings else "")

    def _table(self, label, results):
        unit, scale = select_unit(min(m.median for m in results))
        columns = list(dict.fromkeys(m.task_spec.description or "" for m in results))
        lines, body = [], []
        threads = sorted({m.task_spec.num_threads for m in results})
        for n in threads:
            mine = [m for m in results if m.task_spec.num_threads == n]
            body.append(n)
            for row in dict.fromkeys(m.as_row_name for m in mine):
                found = {m.task_spec.description or "": m for m in mine if m.as_row_name == row}
                body.append((row, [self._cell(found.get(c), scale) for c in columns]))
        first = max(len(f"{n} threads: ") if isinstance(n, int) else 6 + len(n[0]) for n in body)
        widths = [
            max(len(name), *(len(r[1][i]) for r in body if not isinstance(r, int)))
            for i, name in enumerate(columns)
        ]

        def line(start, cells):
            joined = "".join(f"  |  {cell:^{w}}" for cell, w in zip(cells, widths))
            return start.ljust(first) + joined

        header = line("", columns)
        lines.append("[" + f" {label or ''} ".center(len(header) - 2, "-") + "]")
        lines.append(header)
        for row in body:
            if isinstance(row, int):
                lines.append(f"{row} threads: ".ljust(len(header), "-"))
            else:
                lines.append(line("      " + row[0], row[1]))
        return "\n".join(lines) + f"\n\nTimes are in {unit_to_english(unit)}s ({unit}).\n"
