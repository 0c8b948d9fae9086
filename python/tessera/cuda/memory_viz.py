"""Snapshots of device memory from the command line, as PyTorch's module of this name has it.

python -m tessera.cuda.memory_viz trace_plot snapshot.pickle -o page.html
python -m tessera.cuda.memory_viz segment_plot snapshot.pickle -o page.html
python -m tessera.cuda.memory_viz trace | stats | segsum | memory | segments snapshot.pickle

`memory` and `segments` write one line for each stack, its calls and its bytes: what programs that
draw flame graphs read. `tessera memory FILE` is the shorter way to the page.
"""

import argparse
import sys

from ._memory_view.command import load
from ._memory_view.page import page
from ._memory_view.read import SnapshotError
from ._memory_view.replay import Replay
from ._memory_view.report import report, size_text
from ._memory_view.stacks import plain

__all__ = ["memory", "segments", "segsum", "segment_plot", "trace", "trace_plot"]


def _replay(data, device=None):
    return data if isinstance(data, Replay) else Replay(data, device)


def trace_plot(data, device=None, plot_segments=False):
    """The page, as text."""
    replay = _replay(data, device)
    return page(replay, "snapshot", "segments" if plot_segments else "timeline")


def segment_plot(data, device=None):
    """The page, at its picture of segments."""
    return trace_plot(data, device, plot_segments=True)


def trace(data):
    """What happened, a line for each event; b<address>_<n> is the n-th allocation there."""
    replay = _replay(data)
    out, names, times = [f"Device {replay.device} ----------------"], {}, {}
    for number, entry in enumerate(replay.trace):
        action, at = entry["action"], entry.get("addr", 0)
        if action == "alloc":
            times[at] = times.get(at, -1) + 1
            names[at] = f"b{at:x}_{times[at]}"
            what = f"{names[at]} = alloc({size_text(entry['size'])})"
        elif action in ("free_requested", "free_completed", "free"):
            what = f"{action}({names.get(at, f'b{at:x}')})  # {size_text(entry['size'])}"
        elif action == "oom":
            free = entry.get("device_free", at)
            what = f"OOM: {size_text(entry['size'])} asked, {size_text(free)} free on the device"
        elif action == "snapshot":
            what = "snapshot"
        else:
            what = f"{action}(0x{at:x}, {size_text(entry.get('size', 0))})"
        stack = replay.stacks.number(entry.get("frames"))
        line = replay.stacks.line_text(replay.stacks.line_of[stack]) if stack else ""
        out.append(f"{number:>8} {plain(what)}" + (f"  {line}" if line else ""))
    return "\n".join(out) + "\n"


def _folded(replay, rows):
    """Stacks, the outermost call first, and bytes."""
    sums = {}
    for prefix, stack, size in rows:
        frames = [replay.stacks.frames[i] for i in reversed(replay.stacks.stacks[stack])]
        calls = [plain(f"{file}:{line}:{name}").replace(";", ",") for file, line, name in frames]
        key = ";".join([*prefix, *(calls or ["<unknown>"])])
        sums[key] = sums.get(key, 0) + int(size)
    return "".join(f"{key} {size}\n" for key, size in sums.items())


def memory(data):
    """What is in use at the end, by its calls."""
    replay = _replay(data)
    rows = [([], b[5], b[2]) for b in replay.blocks if b[4] == "active_allocated"]
    return _folded(replay, rows)


def segments(data):
    """What is reserved at the end, by its state and its calls."""
    replay = _replay(data)
    where = [f"stream_{s.get('stream', 0)};seg_{i}" for i, s in enumerate(replay.segments)]
    return _folded(replay, [([where[b[0]], plain(b[4])], b[5], b[2]) for b in replay.blocks])


def segsum(data):
    """Each segment with its blocks as a row of letters."""
    replay = _replay(data)
    out = ["a: in use, w: waits for a stream, .: free"]
    letters = {"active_allocated": "a", "inactive": "."}
    rows = [""] * len(replay.segments)
    for segment, at, size, _, state, _ in replay.blocks:
        total = max(1, replay.segments[segment]["total_size"])
        to = round(64 * (at - replay.segments[segment]["address"] + size) / total)
        rows[segment] += letters.get(state, "w") * max(0, to - len(rows[segment]))
    for row, segment in zip(rows, replay.segments):
        used = segment.get("allocated_size", 0)
        out.append(
            f"0x{segment['address']:x} {size_text(segment['total_size']):>11} "
            f"{size_text(used):>11} in use  [{row}]"
        )
    return "\n".join(out) + "\n"


def stats(data):
    """Peak, holders, what is left, what did not fit, holes."""
    return report(_replay(data), "snapshot") + "\n"


_TEXTS = {"trace": trace, "memory": memory, "segments": segments, "segsum": segsum, "stats": stats}
_PAGES = {"trace_plot": trace_plot, "segment_plot": segment_plot}


def main(args=None):
    parser = argparse.ArgumentParser(prog="memory_viz", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in {**_PAGES, **_TEXTS}.items():
        command = commands.add_parser(name, help=function.__doc__)
        command.add_argument("input", help="a snapshot: a pickle or JSON")
        command.add_argument("-d", "--device", type=int, help="that with most events else")
        output = "output.html" if name in _PAGES else None
        command.add_argument("-o", "--output", default=output, help="the file to write")
    options = parser.parse_args(args)
    try:
        replay = load(options.input, options.device)
        text = {**_PAGES, **_TEXTS}[options.command](replay)
        if options.output is None:
            sys.stdout.write(text)
        else:
            with open(options.output, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
    except (SnapshotError, OSError) as error:
        print(f"memory_viz: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
