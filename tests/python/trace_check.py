"""What Perfetto's importer of JSON traces asks of a file, as far as PyTorch's traces use it.

It sorts by time, keeps one stack of slices for each thread, drops a slice that reaches beyond the
one it began in, and binds both ends of a flow to slices: what it would drop is an error here.
"""

import gzip
import json

_PHASES = {"X", "M", "i", "s", "f"}


def read_trace(path):
    opens = gzip.open if str(path).endswith(".gz") else open
    with opens(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def check_trace(path):
    """Raises AssertionError where the importer would complain; the slices by thread."""
    trace = read_trace(path)
    assert trace["displayTimeUnit"] in ("ms", "ns")
    assert isinstance(trace["baseTimeNanoseconds"], int)
    slices, starts, ends = {}, {}, {}
    for event in trace["traceEvents"]:
        assert event["ph"] in _PHASES, event
        assert isinstance(event["name"], str) and event["name"], event
        track = (event["pid"], event["tid"])
        assert all(isinstance(part, (int, str)) for part in track), event
        if event["ph"] == "M":
            assert isinstance(event["args"], dict), event
            continue
        assert event["ts"] >= 0, event
        if event["ph"] == "X":
            assert event["dur"] >= 0, event
            slices.setdefault(track, []).append(event)
        elif event["ph"] == "i":
            assert event["s"] in ("t", "p", "g"), event
        else:
            side = starts if event["ph"] == "s" else ends
            key = (event["cat"], event["name"], event["id"])
            assert key not in side, event
            side[key] = event
    for track, events in slices.items():
        _check_nesting(track, events)
    assert starts.keys() == ends.keys()
    for side in (starts, ends):
        for event in side.values():
            _check_bound(event, slices)
    for key, event in ends.items():
        assert event["bp"] == "e", event
        assert event["ts"] >= starts[key]["ts"], (starts[key], event)
    return slices


def _ns(us):
    return round(us * 1000)


def _check_nesting(track, events):
    events.sort(key=lambda e: (_ns(e["ts"]), -_ns(e["dur"])))
    open_until = []
    for event in events:
        begin = _ns(event["ts"])
        end = begin + _ns(event["dur"])
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert not open_until or end <= open_until[-1], (track, event)
        open_until.append(end)


def _check_bound(event, slices):
    at = _ns(event["ts"])
    for one in slices.get((event["pid"], event["tid"]), ()):
        if _ns(one["ts"]) <= at <= _ns(one["ts"]) + _ns(one["dur"]):
            return
    raise AssertionError(("bound to no slice", event))
