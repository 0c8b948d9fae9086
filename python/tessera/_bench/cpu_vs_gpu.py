"""At which size does the GPU win? Products, pointwise operators, and with the transfers."""

import tessera as torch

from ..utils.benchmark import Timer
from . import best_of, no_gpu
from .plot import Plot, table

# The loop of the article that asked: fourteen operators on float16.
_POINTWISE = """
y0 = a + b
y1 = y0 + c
y2 = y1 * a
y3 = y2 - b
y4 = y2 + y3
y5 = 0.33 * a + 0.66 * b + c * 0.9
y = y4 + y5
"""
_CASES = {
    "matmul": ("a @ b", torch.float32),
    "pointwise": (_POINTWISE, torch.float16),
    "matmul and transfers": ("(a.to(device) @ b.to(device)).cpu()", torch.float32),
}


def _timer(case, n, device):
    stmt, dtype = _CASES[case]
    home = "cpu" if "transfers" in case else device
    names = {k: torch.rand(n, n, dtype=dtype, device=home) for k in "abc"}
    return Timer(stmt, globals={**names, "device": device}, num_threads=torch.get_num_threads())


def _wins_from(sizes, cpu, gpu):
    """The size from which on the GPU is faster; None where it is not at the end."""
    first = None
    for n, a, b in zip(sizes, cpu, gpu):
        first = (n if first is None else first) if b < a else None
    return first


def run(quick):
    if not torch.cuda.is_available():
        return no_gpu("A comparison")
    sizes = [16, 64, 256] if quick else [16, 32, 64, 128, 256, 512, 1024, 2048]
    if not quick and not torch.cuda.get_device_properties().is_virtual:
        sizes += [4096]
    plots = []
    for case in _CASES:
        pairs = [
            best_of([_timer(case, n, device) for device in ("cpu", "cuda")], 0.01 if quick else 0.1)
            for n in sizes
        ]
        cpu, gpu = zip(*pairs)
        rows = [
            [f"{n} x {n}", f"{a * 1e6:,.1f} us", f"{b * 1e6:,.1f} us", f"{a / b:.2f} x"]
            for n, a, b in zip(sizes, cpu, gpu)
        ]
        print(table([case, "CPU", "GPU", "GPU faster by"], rows))
        first = _wins_from(sizes, cpu, gpu)
        said = f"from {first} x {first} on" if first else f"at no size up to {sizes[-1]}"
        print(f"the GPU wins {said}\n")
        series = {
            name: [(n, t * 1e6) for n, t in zip(sizes, times)]
            for name, times in (("CPU", cpu), ("GPU", gpu))
        }
        names = {n: str(n) for n in sizes}
        plots.append(Plot(case, "n of n x n", "microseconds", series, True, True, names))
    if torch.cuda.get_device_properties().is_virtual:
        print(
            "The virtual GPU computes with the CPU's cores: it cannot win by more than its queue."
        )
    return plots
