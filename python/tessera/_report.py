"""`tessera run --report`: after the program, one screen on what its devices did.

The numbers come from the core (TESSERA_WATCH=1, src/tessera/driver/watch.h): launches and copies
are counted, and each millisecond it is looked whether a GPU has work.
"""

import atexit
import os
import sys


def begin():
    """From here on; the report follows when the program ends, however it does."""
    from . import _C

    os.environ["TESSERA_WATCH"] = "1"  # read when a device is first used
    _C._watch_start()
    _watch_loaders()
    owner = os.getpid()

    def end():
        if os.getpid() == owner:  # not in its forked children
            print("\n".join(report()), file=sys.stderr)

    atexit.register(end)


def _watch_loaders():
    """While a loader's next batch is asked for, the program waits for data."""
    from . import _C
    from .utils.data import dataloader

    for kind in (dataloader._BaseDataLoaderIter, dataloader._TensorBatchesIter):
        inner = kind.__dict__["__next__"]

        def watched(self, inner=inner):
            _C._watch_loading(True)
            try:
                return inner(self)
            finally:
                _C._watch_loading(False)

        kind.__next__ = watched


def _size(size):
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def _count(n, one, many):
    return f"{n:,} {one if n == 1 else many}"


def _share(part, whole):
    return 100.0 * part / whole if whole else 0.0


def facts():
    """What was counted, with what the devices are and held."""
    import tessera as torch

    torch._C._watch_stop()
    a = torch._C._watch_read()
    a["available"] = torch.cuda.device_count()
    a["why"] = torch._C._cuda_why_unavailable() if not a["available"] else ""
    for index, device in enumerate(a["devices"]):
        device["name"] = torch.cuda.get_device_name(index)
        device["peak"] = torch.cuda.max_memory_allocated(index)
        device["total"] = torch.cuda.get_device_properties(index).total_memory
        device["busy"] = _share(device["busy_samples"], a["samples"])
    a["used"] = any(d["launches"] or d["graphs"] for d in a["devices"])
    for name in ("busy", "loading", "launching", "idle", "loading_at_all"):
        a[name] = _share(a[name], a["samples"])
    return a


def answer(a):
    """Is the program using the GPU? Yes or no, with the evidence."""
    if not a["available"]:
        return f"no: there is none. {a['why']}"
    kernels = sum(d["launches"] for d in a["devices"])
    graphs = sum(d["graphs"] for d in a["devices"])
    if a["used"]:
        more = f" and {graphs:,} graph replays" if graphs else ""
        used = sum(1 for d in a["devices"] if d["launches"] or d["graphs"])
        most = f"{used} of {a['available']} GPUs"
        return f"yes: {kernels:,} kernels{more} on {most}, busy {a['busy']:.0f} % of the time"
    up = sum(d["to_device"]["bytes"] for d in a["devices"])
    moved = f"{_size(up)} were copied there, but " if up else ""
    there = "a GPU is" if a["available"] == 1 else f"{a['available']} GPUs are"
    return (
        f"no: {there} there, but {moved}no kernel ran on it; the CPU ran "
        f"{a['cpu_launches']:,} in {a['cpu_seconds']:.2f} s"
    )


def advice(a):
    """The one thing to change first."""
    if not a["available"]:
        if a["loading_at_all"] > 30:
            return "loading data takes most of the time: DataLoader(num_workers=...)"
        return "`tessera doctor` says what is missing for a GPU"
    if not a["used"]:
        return (
            "move model and data to the GPU: device = torch.device('cuda'); model.to(device), and "
            "each batch .to(device)"
        )
    if a["seconds"] < 0.3:
        return "the program was too short to tell: let it run for a second or more"
    up = {
        k: sum(d["to_device"][k] for d in a["devices"])
        for k in ("bytes", "pageable_bytes", "seconds")
    }
    # A copy that waits behind kernels costs nothing: only when the GPU is idle does it hold up.
    copying = min(_share(up["seconds"], a["seconds"]), 100 - a["busy"])
    waits = sum(d["to_host"]["copies"] + d["synchronized"] for d in a["devices"])
    per_kernel = waits / max(1, sum(d["launches"] for d in a["devices"]))
    choices = [
        (
            a["loading"],
            20,
            "the GPU waits for data: DataLoader(num_workers=4, pin_memory=True), or keep the data "
            "on the GPU",
        ),
        (
            copying if up["pageable_bytes"] > 0.5 * up["bytes"] else 0,
            15,
            "copies from pageable memory hold the program up: DataLoader(pin_memory=True) and "
            ".to(device, non_blocking=True)",
        ),
        (
            a["launching"] if per_kernel > 0.2 else 0,
            15,
            f"the program waits for the GPU {waits:,} times (.item(), .cpu(), print): keep losses "
            "on the GPU and read them now and then",
        ),
        (
            a["launching"],
            25,
            "kernels are too short to keep the GPU busy: a larger batch, or "
            "torch.compile(model, mode='reduce-overhead')",
        ),
        (
            a["idle"],
            50,
            "most of the time the GPU has nothing to do while the program does other things: "
            "`tessera run --profile` shows which",
        ),
    ]
    choices = [(share, text) for share, least, text in choices if share >= least]
    if choices:
        return max(choices)[1]
    fullest = max(_share(d["peak"], d["total"]) for d in a["devices"])
    if a["busy"] >= 60:
        return (
            "the GPU is the limit: torch.autocast('cuda', torch.bfloat16) makes its work less"
            + ("; memory leaves room for a larger batch" if fullest < 40 else "")
        )
    return "nothing stands out: `tessera run --profile` shows where the time went"


def report():
    a = facts()
    yield ""
    yield f"---- tessera: what the devices did in {a['seconds']:.2f} s " + "-" * 40
    yield f"Is it using the GPU?  {answer(a)}"
    cores = _share(a["cpu_seconds"], a["seconds"])
    yield f"cpu                   {a['cpu_launches']:,} kernels, {cores:.0f} % of the time in them"
    for index, d in enumerate(a["devices"]):
        graphs = f", {d['graphs']:,} graphs" if d["graphs"] else ""
        yield f"cuda:{index}                {d['name']}: {d['launches']:,} kernels{graphs}"
        yield f"  busy                {d['busy']:5.1f} %"
        for name, words in (("to_device", "to the GPU"), ("to_host", "to the host")):
            c = d[name]
            pinned = c["bytes"] - c["pageable_bytes"]
            yield (
                f"  {words:<20}{_count(c['copies'], 'copy', 'copies')}, {_size(c['bytes'])}: "
                f"{_size(c['pageable_bytes'])} pageable, {_size(pinned)} pinned; "
                f"{c['seconds']:.2f} s in them"
            )
        if d["between_bytes"]:
            yield f"  to other GPUs       {_size(d['between_bytes'])}"
        waits = _count(d["synchronized"], "time", "times")
        yield f"  waited for          {waits}, {d['synchronized_seconds']:.2f} s"
        yield f"  peak memory         {_size(d['peak'])} of {_size(d['total'])}"
    if a["available"]:
        yield f"GPU busy              {a['busy']:5.1f} %"
        yield f"waiting for data      {a['loading']:5.1f} %   the GPU idle, a loader waited for"
        yield f"launch-bound          {a['launching']:5.1f} %   kernels end before the next comes"
        yield f"nothing for the GPU   {a['idle']:5.1f} %   no kernel was queued"
    else:
        yield f"waiting for data      {a['loading_at_all']:5.1f} %"
    yield f"Change first:         {advice(a)}"
