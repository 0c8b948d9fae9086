"""Snapshots from files: PyTorch's schema, as JSON or as a pickle."""

import json
import os

from .unpickle import Refused, unpickle


class SnapshotError(ValueError):
    """A file is not a snapshot, or not one that may be read."""


def read_snapshot(path):
    """What _dump_snapshot() wrote, Tessera's or PyTorch's.

    A pickle that names anything to call is refused: nothing in a file is ever run.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SnapshotError(f"{name}: {error.strerror or error}") from None
    if not data:
        raise SnapshotError(f"{name}: the file is empty")
    if data[:1] in b"{[ \n":
        snapshot = _from_json(name, data)
    elif data[:2] == b"PK":
        raise SnapshotError(
            f"{name}: an archive of torch.save, not a snapshot: write one with "
            "torch.cuda.memory._dump_snapshot()"
        )
    else:
        snapshot = _from_pickle(name, data)
    return _checked(name, snapshot)


def _from_json(name, data):
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"{name}: not JSON: {error}") from None


def _from_pickle(name, data):
    try:
        return unpickle(data)
    except Refused as error:
        raise SnapshotError(
            f"{name}: refused: {error}. A snapshot has only plain data; nothing in it was run"
        ) from None


def _checked(name, snapshot):
    if isinstance(snapshot, list):  # torch.cuda.memory_snapshot(), and PyTorch before 2.0
        snapshot = {"segments": snapshot, "device_traces": []}
    if not isinstance(snapshot, dict):
        raise SnapshotError(f"{name}: holds {type(snapshot).__name__}, not a snapshot")
    if not isinstance(snapshot.get("segments"), (list, tuple)):
        raise SnapshotError(f"{name}: not a snapshot: it has no list 'segments'")
    traces = snapshot.setdefault("device_traces", [])
    if not isinstance(traces, (list, tuple)) or not all(
        isinstance(trace, (list, tuple)) for trace in traces
    ):
        raise SnapshotError(f"{name}: not a snapshot: 'device_traces' is no list of lists")
    return snapshot
