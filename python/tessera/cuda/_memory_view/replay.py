"""Who held what when, from a snapshot.

States are numbered: 0 is before the first event, s after event s - 1. An allocation is alive in
the states from `start` up to, not including, `end`; one that was there before the recording starts
at 0, and one that is there at the end ends at `states`.
"""

from array import array

from .read import SnapshotError
from .stacks import Stacks

UNIT = 512  # what both allocators round to


def busiest_device(snapshot):
    """The device with most events; without any, with most memory."""
    traces = snapshot["device_traces"]
    if any(traces):
        return max(range(len(traces)), key=lambda i: len(traces[i]))
    held = {}
    for segment in snapshot["segments"]:
        index = segment.get("device", 0)
        held[index] = held.get(index, 0) + segment["total_size"]
    return max(held, key=held.get, default=0)


def _rounded(size):
    return max(UNIT, (size + UNIT - 1) // UNIT * UNIT)


class Replay:
    """One device of a snapshot."""

    def __init__(self, snapshot, device=None):
        traces = snapshot["device_traces"]
        try:
            self.device = busiest_device(snapshot) if device is None else device
            self.stacks = Stacks()
            self.trace = traces[self.device] if self.device < len(traces) else []
            self.segments = [s for s in snapshot["segments"] if s.get("device", 0) == self.device]
            self.states = len(self.trace) + 1
            self._run()
            self._end()
            self._series()
        except (KeyError, TypeError, AttributeError, OverflowError, ValueError) as error:
            raise SnapshotError(f"not PyTorch's schema: {type(error).__name__}: {error}") from None

    def _run(self):
        self.start, self.end = array("I"), array("I")
        self.size, self.address, self.stack = array("d"), array("d"), array("I")
        self.times = array("d", bytes(8 * self.states))
        self.ooms, self.marks = [], []  # (state, asked, free on the device), (state,)
        self.changes = []  # of reserved memory: (state, bytes)
        requests = any(e["action"] == "free_requested" for e in self.trace)
        ends = ("free_requested",) if requests else ("free_completed", "free")
        before, live, alive_here = [], {}, self.states
        asked, foreign = 0, False  # whether what a free shows is its own calls
        number, time = self.stacks.number, 0
        start, end, size = self.start, self.end, self.size
        address, stack = self.address, self.stack
        for state, entry in enumerate(self.trace, 1):
            action = entry["action"]
            time = max(time, int(entry.get("time_us", time + 1)))  # clocks are set back at times
            self.times[state] = time
            if action == "alloc":
                at, bytes_ = entry["addr"], int(entry["size"])
                if bytes_ < 0:
                    raise ValueError(f"entry {state - 1}: a size of {bytes_}")
                if at in live:  # its end was not recorded
                    end[live[at]] = state
                live[at] = len(start)
                start.append(state)
                end.append(alive_here)
                size.append(_rounded(bytes_))
                address.append(at)
                stack.append(number(entry.get("frames")))
            elif action in ends:
                known = live.pop(entry["addr"], None)
                if known is None:  # made before the recording
                    before.append((state, int(entry["size"]), entry["addr"], entry.get("frames")))
                else:
                    end[known] = state
                    if asked < 100:
                        asked += 1
                        foreign = foreign or number(entry.get("frames")) != stack[known]
            elif action in ("segment_alloc", "segment_map"):
                self.changes.append((state, int(entry["size"])))
            elif action in ("segment_free", "segment_unmap"):
                self.changes.append((state, -int(entry["size"])))
            elif action == "oom":
                free = entry.get("device_free", entry.get("addr", 0))
                self.ooms.append(
                    (state, int(entry["size"]), int(free), number(entry.get("frames")))
                )
            elif action == "snapshot":
                self.marks.append(state)
        self.times[0] = self.times[1] if self.states > 1 else 0
        if foreign:  # PyTorch's: not the line that made it
            before = [(*entry[:3], None) for entry in before]
        self._live, self._before = live, before

    def _end(self):
        """What the segments say: exact sizes, and what no event speaks of."""
        before = [
            (end, _rounded(size), at, self.stacks.number(frames))
            for end, size, at, frames in self._before
        ]
        self.blocks = []  # (segment, address, size, requested, state, stack)
        for index, segment in enumerate(self.segments):
            at = segment["address"]
            for block in segment["blocks"]:
                at, size = block.get("address", at), int(block["size"])
                stack = self.stacks.number(_frames(block))
                state = block["state"]
                requested = int(block.get("requested_size", size))
                if size < 0:
                    raise ValueError(f"a block of {size} bytes")
                if state == "active_allocated":
                    known = self._live.get(at)
                    if known is None:
                        before.append((self.states, size, at, stack))
                    else:
                        self.size[known] = size
                        stack = self.stack[known] = self.stack[known] or stack
                self.blocks.append((index, at, size, requested, state, stack))
                at += size
        del self._live, self._before
        for name, code, values in (
            ("start", "I", [0] * len(before)),
            ("end", "I", [b[0] for b in before]),
            ("size", "d", [b[1] for b in before]),
            ("address", "d", [b[2] for b in before]),
            ("stack", "I", [b[3] for b in before]),
        ):
            setattr(self, name, array(code, values) + getattr(self, name))

    def _series(self):
        """Allocated bytes in every state, and reserved bytes where they change."""
        delta = array("d", bytes(8 * (self.states + 1)))
        for start, end, size in zip(self.start, self.end, self.size):
            delta[start] += size
            delta[end] -= size
        now, peak, at = 0.0, -1.0, 0
        self.allocated = array("d", bytes(8 * self.states))
        for state in range(self.states):
            now += delta[state]
            self.allocated[state] = now
            if now > peak:
                peak, at = now, state
        self.peak_state = at
        total = sum(int(s["total_size"]) for s in self.segments)
        net = lowest = 0
        for _, change in self.changes:
            net += change
            lowest = min(lowest, net)
        base = max(total - net, -lowest)
        self.reserved = [(0, base)]
        for state, change in self.changes:
            base += change
            self.reserved.append((state, base))

    def reserved_at(self, state):
        from bisect import bisect_right

        return self.reserved[bisect_right(self.reserved, state, key=lambda r: r[0]) - 1][1]

    def alive(self, state):
        """Numbers of the allocations that are alive in a state."""
        pairs = enumerate(zip(self.start, self.end))
        return [i for i, (start, end) in pairs if start <= state < end]

    def by_line(self, state):
        """(line, bytes, count) of what is alive, the most first."""
        held = {}
        line_of, stack = self.stacks.line_of, self.stack
        for i in self.alive(state):
            entry = held.setdefault(line_of[stack[i]], [0, 0])
            entry[0] += self.size[i]
            entry[1] += 1
        order = sorted(held.items(), key=lambda item: -item[1][0])
        return [(line, int(size), count) for line, (size, count) in order]


def _frames(block):
    """PyTorch 1.13 and 2.0 have a block's calls in its history."""
    if "frames" in block:
        return block["frames"]
    history = block.get("history") or [{}]
    return history[0].get("frames")
