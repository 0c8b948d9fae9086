"""Plots without a library: lines and bars as SVG, and as characters for a terminal."""

import html
import math
from typing import NamedTuple

_COLORS = ("#1f6feb", "#d1521f", "#2c8a3d", "#8a4fb8", "#b8860b", "#5b6670")
_MARKS = "ox+*#@"
_WIDTH, _HEIGHT = 560, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 40, 56


class Plot(NamedTuple):
    title: str
    x: str  # what the axes show
    y: str
    series: dict  # name: [(x, y), ...]
    log_x: bool = False
    log_y: bool = False
    x_names: dict | None = None  # of values
    y_names: dict | None = None


class _Axis:
    """Values to 0..1, and where its marks are."""

    def __init__(self, values, log, names):
        self.log, self.names = log, names or {}
        low, high = min(values), max(values)
        if log:
            self.low, self.high = math.log10(low), math.log10(high)
        else:
            self.low, self.high = min(low, 0.0), high * 1.05
        if self.high <= self.low:
            self.low, self.high = self.low - 0.5, self.low + 0.5

    def __call__(self, value):
        value = math.log10(value) if self.log else value
        return (value - self.low) / (self.high - self.low)

    def marks(self):
        if self.names:
            return sorted(self.names)
        if self.log:
            first, last = math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9)
            powers = [10.0**e for e in range(first, last + 1)]
            if len(powers) > 2:
                return powers
            finer = [m * 10.0**e for e in range(first - 1, last + 1) for m in (1, 2, 5)]
            return [v for v in finer if -1e-9 <= self(v) <= 1 + 1e-9]
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 2))
        while (self.high - self.low) / step > 8:
            step *= 2 if (self.high - self.low) / step < 16 else 5
        return [i * step for i in range(math.ceil(self.low / step), int(self.high / step) + 1)]

    def name(self, value):
        return self.names.get(value) or f"{value:.6g}"


def _axes(plot):
    points = [p for points in plot.series.values() for p in points]
    x = _Axis([p[0] for p in points], plot.log_x, plot.x_names)
    y = _Axis([p[1] for p in points], plot.log_y, plot.y_names)
    if not plot.log_x and not plot.x_names:
        x.high = max(p[0] for p in points) or 1.0
    return x, y


def _text(x, y, words, anchor="middle", size=12, more=""):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{more}>'
        f"{html.escape(str(words))}</text>"
    )


class Bars(NamedTuple):
    """One number for each name."""

    title: str
    unit: str
    values: dict


def _bars_panel(bars):
    most = max(bars.values.values()) or 1.0
    yield _text(_WIDTH / 2, 22, bars.title, size=15, more=' font-weight="600"')
    step = (_HEIGHT - _TOP - _BOTTOM) / len(bars.values)
    for i, (name, value) in enumerate(bars.values.items()):
        at, long = _TOP + i * step, (_WIDTH - 150) * value / most
        color = _COLORS[i % len(_COLORS)]
        yield _text(20, at + 16, name, "start")
        height = min(step - 30, 40)
        size = f'width="{long:.1f}" height="{height:.1f}"'
        yield f'<rect x="20" y="{at + 22:.1f}" {size} fill="{color}"/>'
        yield _text(28 + long, at + 26 + height / 2, f"{value:.1f} {bars.unit}", "start")


def _bars_terminal(bars, width):
    most, left = max(bars.values.values()) or 1.0, max(map(len, bars.values))
    rows = (
        f"{name:>{left}} |{'#' * round(value / most * width)} {value:.1f} {bars.unit}"
        for name, value in bars.values.items()
    )
    return "\n".join([bars.title, *rows])


def _panel(plot):
    if isinstance(plot, Bars):
        yield from _bars_panel(plot)
        return
    x, y = _axes(plot)
    top = _TOP + 18 * ((len(plot.series) + 1) // 2)  # names stand above, two in a row
    inner_w, inner_h = _WIDTH - _LEFT - _RIGHT, _HEIGHT - top - _BOTTOM
    to_x = lambda value: _LEFT + x(value) * inner_w  # noqa: E731
    to_y = lambda value: top + (1 - y(value)) * inner_h  # noqa: E731
    yield _text(_WIDTH / 2, 22, plot.title, size=15, more=' font-weight="600"')
    for value in y.marks():
        at = to_y(value)
        ends = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}"'
        yield f'<line {ends} y1="{at:.1f}" y2="{at:.1f}" class="grid"/>'
        yield _text(_LEFT - 6, at + 4, y.name(value), "end", 11)
    for value in x.marks():
        at = to_x(value)
        yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{top + inner_h}" class="grid"/>'
        yield _text(at, top + inner_h + 16, x.name(value), size=11)
    yield f'<rect x="{_LEFT}" y="{top}" width="{inner_w}" height="{inner_h}" class="frame"/>'
    yield _text(_LEFT + inner_w / 2, _HEIGHT - 20, plot.x)
    middle = top + inner_h / 2
    yield _text(16, middle, plot.y, more=f' transform="rotate(-90 16 {middle:.1f})"')
    for i, (name, points) in enumerate(plot.series.items()):
        color = _COLORS[i % len(_COLORS)]
        where = [(to_x(a), to_y(b)) for a, b in points]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in where)
        yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'
        if len(where) <= 30:
            for a, b in where:
                yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{color}"/>'
        left, at = _LEFT + (i % 2) * inner_w / 2, _TOP + 18 * (i // 2)
        yield f'<rect x="{left:.0f}" y="{at + 1}" width="14" height="4" fill="{color}"/>'
        yield _text(left + 20, at + 7, name, "start", 12)


def svg(plots):
    """All of them side by side, as one file that needs nothing else."""
    width = _WIDTH * len(plots)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT}" '
        f'viewBox="0 0 {width} {_HEIGHT}" font-family="system-ui, sans-serif" fill="#24292f">',
        "<style>.grid{stroke:#d8dee4;stroke-width:1}.frame{fill:none;stroke:#8c959f}</style>",
        f'<rect width="{width}" height="{_HEIGHT}" fill="#ffffff"/>',
    ]
    for i, plot in enumerate(plots):
        lines += [f'<g transform="translate({i * _WIDTH} 0)">', *_panel(plot), "</g>"]
    return "\n".join([*lines, "</svg>"]) + "\n"


def terminal(plot, width=64, height=14):
    """The same in characters."""
    if isinstance(plot, Bars):
        return _bars_terminal(plot, width)
    x, y = _axes(plot)
    grid = [[" "] * width for _ in range(height)]
    for mark, points in zip(_MARKS, plot.series.values()):
        where = [(x(a) * (width - 1), (1 - y(b)) * (height - 1)) for a, b in points]
        for (a, b), (c, d) in zip(where, where[1:]):  # dots between
            for i in range(1, max(int(abs(c - a)), 1)):
                t = i / abs(c - a)
                row, column = round(b + (d - b) * t), round(a + (c - a) * t)
                if grid[row][column] == " ":
                    grid[row][column] = "."
        for a, b in where if len(where) <= width // 2 else where[:: max(len(where) // 16, 1)]:
            grid[round(b)][round(a)] = mark
    names = {round((1 - y(v)) * (height - 1)): y.name(v) for v in reversed(y.marks())}
    left = max(len(name) for name in names.values())
    lines = [plot.title, f"{plot.y}"]
    for row, cells in enumerate(grid):
        lines.append(f"{names.get(row, ''):>{left}} |{''.join(cells)}".rstrip())
    lines.append(" " * left + " +" + "-" * width)
    below = [" "] * (width + 12)
    end = 0
    for value in x.marks():
        name, at = x.name(value), round(x(value) * (width - 1))
        at = max(at - len(name) // 2, 0)
        if at >= end:
            below[at : at + len(name)] = name
            end = at + len(name) + 1
    lines.append(" " * (left + 2) + "".join(below).rstrip() + f"   {plot.x}")
    lines.append("  ".join(f"{mark} {name}" for mark, name in zip(_MARKS, plot.series)))
    return "\n".join(lines)


def table(head, rows):
    """Columns under their heads, numbers to the right."""
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(str(c).rjust(w) for c, w in zip(row, widths)) for row in [head, *rows]]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
