"""How long tensors take to the GPU and back, by size, from pinned and from pageable memory."""

import tessera as torch

from ..utils.benchmark import Timer
from . import best_of, no_gpu
from .plot import Plot, table

_WAYS = (
    ("to the GPU, pinned", True, True),
    ("to the GPU, pageable", True, False),
    ("to the host, pinned", False, True),
    ("to the host, pageable", False, False),
)


def _size_name(size):
    return f"{size / 1e9:g} GB" if size >= 1e9 else f"{size / 1e6:g} MB"


def _timer(size, up, pinned):
    host = torch.ones(size, dtype=torch.uint8, pin_memory=pinned)
    device = torch.empty(size, dtype=torch.uint8, device="cuda")
    to, source = (device, host) if up else (host, device)
    return Timer("to.copy_(source)", globals={"to": to, "source": source})


def run(quick):
    if not torch.cuda.is_available():
        return no_gpu("A transfer")
    sizes = (
        [10**6, 4 * 10**6, 16 * 10**6] if quick else [m * 10**e for e in (6, 7, 8) for m in (1, 3)]
    )
    sizes += [] if quick else [10**9]
    free, _ = torch.cuda.mem_get_info()
    fitting = [size for size in sizes if size < free * 0.9]
    if fitting != sizes:
        print(f"left out, {free / 1e9:.1f} GB are free: {_size_name(max(sizes))} and what is near")
    times = {name: [] for name, _, _ in _WAYS}
    rows = []
    for size in fitting:
        row = [_size_name(size)]
        # Of a large size there is room for one at a time.
        together = [_WAYS] if size * 5 < free else [[way] for way in _WAYS]
        taken = []
        for ways in together:
            taken += best_of([_timer(size, *way[1:]) for way in ways], 0.02 if quick else 0.3)
        for (name, _, _), seconds in zip(_WAYS, taken):
            times[name].append((size, seconds))
            row.append(f"{seconds * 1e3:.3f} ms {size / seconds / 1e9:6.2f} GB/s")
        rows.append(row)
        torch.cuda.empty_cache()
    print(table(["size", *(name for name, _, _ in _WAYS)], rows))
    names = {size: _size_name(size) for size in fitting if quick or str(size)[0] == "1"}
    rates = {n: [(size, size / s / 1e9) for size, s in points] for n, points in times.items()}
    seconds = {n: [(size, s * 1e3) for size, s in points] for n, points in times.items()}
    return [
        Plot("Transfer time", "size", "milliseconds", seconds, True, True, names),
        Plot("Effective bandwidth", "size", "GB/s", rates, True, False, names),
    ]
