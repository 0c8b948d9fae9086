"""A replay as the page wants it: arrays, base64 of deflated bytes, and a few words of JSON.

The page draws a screen's columns, not events: for windows of many events it takes their peaks from
bins made here, and for smaller ones it replays the events behind the nearest bin.
"""

import base64
import json
import sys
import zlib
from array import array
from heapq import nlargest

from .stacks import is_own

GROUPS = 20  # lines with a colour of their own; the last one is the rest
BINS = 8192
LARGEST = 16384  # allocations that are drawn one by one however many events are in view


def groups(replay):
    """Lines with a colour, the steadiest first (it is drawn lowest), and each line's group."""
    lines = len(replay.stacks.lines)
    line_of, stacks = replay.stacks.line_of, replay.stack
    at_peak, held = [0.0] * lines, [0.0] * lines
    peak = replay.peak_state
    for i, (start, end, size) in enumerate(zip(replay.start, replay.end, replay.size)):
        line = line_of[stacks[i]]
        held[line] += size * (end - start)
        if start <= peak < end:
            at_peak[line] += size
    ranked = sorted(range(lines), key=lambda line: (-at_peak[line], -held[line]))
    chosen = [line for line in ranked[: GROUPS - 1] if held[line] > 0]
    chosen.sort(key=lambda line: -held[line] / max(at_peak[line], held[line] / replay.states))
    group_of = [len(chosen)] * lines
    for group, line in enumerate(chosen):
        group_of[line] = group
    return chosen, group_of


def bins(replay, group_of_stack, count):
    """(states of a bin, the state of each bin's peak, bytes of each group in that state)."""
    width = 16
    while replay.states > width * BINS:
        width *= 2
    allocated = replay.allocated
    peaks = array("I")
    for first in range(0, replay.states, width):
        part = allocated[first : first + width]
        peaks.append(first + part.index(max(part)))
    # A state begins one allocation and ends one, but the first and the one behind the last.
    begins, ends = array("I", bytes(4 * replay.states)), array("I", bytes(4 * replay.states))
    now, sums, state = [0.0] * count, array("d"), 1
    size, stack = replay.size, replay.stack
    for i, (start, end) in enumerate(zip(replay.start, replay.end)):
        if start:
            begins[start] = i + 1
        else:
            now[group_of_stack[stack[i]]] += size[i]
        if end < replay.states:
            ends[end] = i + 1
    for peak in peaks:
        while state <= peak:
            if begins[state]:
                i = begins[state] - 1
                now[group_of_stack[stack[i]]] += size[i]
            if ends[state]:
                i = ends[state] - 1
                now[group_of_stack[stack[i]]] -= size[i]
            state += 1
        sums.extend(now)
    return width, peaks, sums


def pack(replay, name):
    """The page's data: a dict for JSON whose "bytes" hold the arrays."""
    stacks = replay.stacks
    chosen, group_of = groups(replay)
    group_of_stack = array("B", [group_of[line] for line in stacks.line_of])
    width, peaks, sums = bins(replay, group_of_stack, len(chosen) + 1)
    size = replay.size
    largest = array("I", sorted(nlargest(LARGEST, range(len(size)), key=size.__getitem__)))
    first = replay.times[0]
    times = array("d", [t - first for t in replay.times])
    if times and 0 <= min(times) and max(times) < 2**32:
        times = array("I", map(int, times))
    kinds = {"inactive": 0, "active_allocated": 1}
    columns = list(zip(*replay.blocks)) or [()] * 6
    arrays = {
        "start": replay.start,
        "end": replay.end,
        "size": size,
        "address": replay.address,
        "stack": replay.stack,
        "time": times,
        "largest": largest,
        "binPeak": peaks,
        "binSums": sums,
        "groupOfStack": group_of_stack,
        "lineOfStack": array("I", stacks.line_of),
        "ownFrame": array("B", [is_own(frame[0]) for frame in stacks.frames]),
        "reservedAt": array("I", [r[0] for r in replay.reserved]),
        "reserved": array("d", [r[1] for r in replay.reserved]),
        "blockSegment": array("I", columns[0]),
        "blockAddress": array("d", columns[1]),
        "blockSize": array("d", columns[2]),
        "blockRequested": array("d", columns[3]),
        "blockState": array("B", [kinds.get(state, 2) for state in columns[4]]),
        "blockStack": array("I", columns[5]),
    }
    layout, packed = _joined(arrays)
    return {
        "name": name,
        "device": replay.device,
        "states": replay.states,
        "binWidth": width,
        "peak": replay.peak_state,
        "began": first,
        "groups": chosen,
        "ooms": [{"state": s, "asked": a, "free": f} for s, a, f, _ in replay.ooms],
        "marks": replay.marks,
        "frames": stacks.frames,
        "stacks": stacks.stacks,
        "lines": stacks.lines,
        "segments": [
            [s["address"], s["total_size"], s.get("segment_type", ""), s.get("stream", 0)]
            for s in replay.segments
        ],
        "arrays": layout,
        "bytes": packed,
    }


def _joined(arrays):
    """Arrays one after another, each from a multiple of 8, deflated; and where they lie."""
    layout, parts, at = {}, [], 0
    for name, values in arrays.items():
        if sys.byteorder == "big":
            values = array(values.typecode, values)
            values.byteswap()
        data = values.tobytes()
        layout[name] = [values.typecode, at, len(values)]
        padding = -len(data) % 8
        parts += (data, bytes(padding))
        at += len(data) + padding
    return layout, base64.b64encode(zlib.compress(b"".join(parts), 4)).decode()


def as_json(data):
    """For a <script> element: nothing in it can end the element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
