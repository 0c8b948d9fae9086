"""Snapshots of device memory, and its history, in PyTorch's form."""

import json
import os
import pickle

from .. import _C
from ._device import device_count

_STACKS = {None: 0, "state": 1, "alloc": 2, "all": 3}


def _record_memory_history(
    enabled="all",
    context="all",
    stacks="all",
    max_entries=None,
    device=None,
    clear_history=False,
    compile_context=False,
    global_record_annotations=False,
    skip_actions=None,
):
    """Starts (or, with None, ends) recording what happens to memory, with the lines that did it.

    enabled "state" keeps only where what is alive came from; "all" also every event, the last
    `max_entries` of them. `context` says of what the calls are kept: None, "state", "alloc", "all".
    """
    if isinstance(enabled, bool):  # the older form
        enabled = "all" if enabled else None
    if enabled not in (None, "state", "all"):
        raise RuntimeError(
            f"_record_memory_history: expected state to be 'state', 'all' or None, not {enabled!r}"
        )
    if context not in _STACKS:
        raise RuntimeError(
            "_record_memory_history: expected context to be 'state', 'alloc', 'all' or None, "
            f"not {context!r}"
        )
    if stacks not in ("python", "all"):
        raise RuntimeError(
            f"_record_memory_history: expected stacks to be 'python' or 'all', not {stacks!r}"
        )
    if enabled is None or clear_history:
        _C._cuda_stop_history()
    if enabled is not None:
        _C._cuda_start_history(enabled == "all", _STACKS[context], max_entries or 0)


def _raw(device):
    """The core's own form of one device."""
    return json.loads(_C._cuda_memory_snapshot(device))


def _stacks(raw):
    """Lists of frames, shared by all that have the same."""
    frames = [{"filename": file, "line": line, "name": name} for file, line, name in raw["frames"]]
    return [[frames[i] for i in stack] for stack in raw["stacks"]]


def _snapshot(device=None, augment_with_fx_traces=False):
    """Every segment and block, and what was recorded: the dict that PyTorch's memory_viz reads."""
    segments, traces = [], []
    for index in range(device_count()):
        raw = _raw(index)
        stacks = _stacks(raw)
        for segment in raw["segments"]:
            segment["frames"] = stacks[segment["frames"]]
            segment["segment_pool_id"] = tuple(segment["segment_pool_id"])
            for block in segment["blocks"]:
                block["frames"] = stacks[block["frames"]]
        for entry in raw["trace"]:
            entry["frames"] = stacks[entry["frames"]]
        segments += raw["segments"]
        traces.append(raw["trace"])
    return {"segments": segments, "device_traces": traces, "allocator_settings": _settings()}


def _settings():
    conf = os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or os.environ.get("PYTORCH_ALLOC_CONF") or ""
    return {"PYTORCH_CUDA_ALLOC_CONF": conf, **_C._cuda_allocator_settings()}


def memory_snapshot(mempool_id=None):
    return _snapshot()["segments"]


def _dump_snapshot(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
    """Writes _snapshot() to a file: a pickle, or JSON where the name ends so."""
    snapshot = _snapshot()
    if os.fspath(filename).endswith(".json"):
        with open(filename, "w") as file:
            json.dump(snapshot, file)
    else:
        with open(filename, "wb") as file:
            pickle.dump(snapshot, file)
