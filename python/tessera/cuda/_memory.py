"""Device memory: how much, and since when."""

from .. import _C
from ._device import current_device, index_of


def memory_allocated(device=None):
    return _C._cuda_memory_allocated(index_of(device))


def max_memory_allocated(device=None):
    return _C._cuda_max_memory_allocated(index_of(device))


def memory_reserved(device=None):
    return _C._cuda_memory_reserved(index_of(device))


def max_memory_reserved(device=None):
    return _C._cuda_max_memory_reserved(index_of(device))


def reset_peak_memory_stats(device=None):
    _C._cuda_reset_peak(index_of(device))


reset_max_memory_allocated = reset_peak_memory_stats


def empty_cache():
    _C._cuda_empty_cache()


def mem_get_info(device=None):
    return _C._cuda_memory_info(index_of(device))


def set_per_process_memory_fraction(fraction, device=None):
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _C._cuda_set_memory_fraction(fraction, index_of(device))


def memory_stats(device=None):
    index = index_of(device)
    retries, ooms = _C._cuda_memory_counts(index)
    return {
        "allocated_bytes.all.current": _C._cuda_memory_allocated(index),
        "allocated_bytes.all.peak": _C._cuda_max_memory_allocated(index),
        "reserved_bytes.all.current": _C._cuda_memory_reserved(index),
        "reserved_bytes.all.peak": _C._cuda_max_memory_reserved(index),
        "num_alloc_retries": retries,
        "num_ooms": ooms,
    }


def _readable(size):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 8192 or unit == "GiB":
            return f"{int(size)} {unit}"
        size /= 1024


def memory_summary(device=None, abbreviated=False):
    """What memory_stats() says, as a table to print."""
    index = index_of(device)
    index = current_device() if index < 0 else index
    stats = memory_stats(index)
    free, total = mem_get_info(index)
    rows = [
        ("Metric", "Cur Usage", "Peak Usage"),
        *(
            (name, _readable(stats[f"{key}.current"]), _readable(stats[f"{key}.peak"]))
            for name, key in (
                ("Allocated memory", "allocated_bytes.all"),
                ("GPU reserved memory", "reserved_bytes.all"),
            )
        ),
        ("Free on the device", _readable(free), f"of {_readable(total)}"),
    ]
    rule = "|" + "=" * 59 + "|"
    lines = [
        rule,
        "|" + f"  CUDA memory summary, device ID {index}".ljust(59) + "|",
        f"|  CUDA OOMs: {stats['num_ooms']:<12}|  cudaMalloc retries: "
        f"{stats['num_alloc_retries']}".ljust(60)
        + "|",
        rule,
    ]
    for name, *values in rows:
        lines.append(f"| {name:<21} |" + "|".join(f" {value:>15} " for value in values) + "|")
    return "\n".join([*lines, rule, ""])
