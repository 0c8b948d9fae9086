"""Device memory: how much, since when, and held by whom."""

import collections

from .. import _C
from ._device import current_device, index_of


def _of_device(number, device):
    """As in PyTorch, nothing is held where there is no device, and asking is no error."""
    return number(index_of(device)) if _C._cuda_device_count() else 0


def memory_allocated(device=None):
    return _of_device(_C._cuda_memory_allocated, device)


def max_memory_allocated(device=None):
    return _of_device(_C._cuda_max_memory_allocated, device)


def memory_reserved(device=None):
    return _of_device(_C._cuda_memory_reserved, device)


def max_memory_reserved(device=None):
    return _of_device(_C._cuda_max_memory_reserved, device)


def reset_peak_memory_stats(device=None):
    _C._cuda_reset_peak(index_of(device))


def reset_accumulated_memory_stats(device=None):
    _C._cuda_reset_accumulated(index_of(device))


# Older names of the same.
reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


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
    stats = _C._cuda_memory_stats(index_of(device)) if _C._cuda_device_count() else {}
    return collections.OrderedDict(sorted(stats.items()))


def memory_stats_as_nested_dict(device=None):
    nested = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        at = nested
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value
    return nested


def get_allocator_backend():
    return "native"


# ---- memory_summary ---------------------------------------------------------------------------

_ROWS = (
    ("Allocated memory", "allocated_bytes", True),
    ("Active memory", "active_bytes", True),
    ("Requested memory", "requested_bytes", True),
    ("GPU reserved memory", "reserved_bytes", True),
    ("Non-releasable memory", "inactive_split_bytes", True),
    ("Allocations", "allocation", False),
    ("Active allocs", "active", False),
    ("GPU reserved segments", "segment", False),
    ("Non-releasable allocs", "inactive_split", False),
)
_COLUMNS = ("current", "peak", "allocated", "freed")


def _in_units(values, steps, names):
    """All in the unit of the peak, or a larger one where a sum over time needs it."""
    size, unit = values[1], 0
    while (size >= 768 * steps or max(values) // steps**unit > 9999999) and unit + 1 < len(names):
        size /= steps
        unit += 1
    return [f"{int(v // steps**unit):7d} {names[unit]:<4}" for v in values]


def _line(text):
    return f"|{text:<75}|"


def memory_summary(device=None, abbreviated=False):
    """What memory_stats() says, as a table to print."""
    index = index_of(device)
    index = current_device() if index < 0 else index
    stats = memory_stats(index)
    rule, thin = _line("=" * 75), _line("-" * 75)
    lines = [
        rule,
        _line(f"                  PyTorch CUDA memory summary, device ID {index:<18d}"),
        thin,
        _line(
            f"            CUDA OOMs: {stats['num_ooms']:<12d} |"
            f"        cudaMalloc retries: {stats['num_alloc_retries']:<8d}"
        ),
        rule,
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |",
    ]
    pools = (
        [("all", "")]
        if abbreviated
        else [("all", ""), ("large_pool", "large pool"), ("small_pool", "small pool")]
    )
    for title, key, is_bytes in _ROWS:
        lines.append(thin)
        for pool, name in pools:
            values = [stats[f"{key}.{pool}.{column}"] for column in _COLUMNS]
            cells = (
                _in_units(values, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))
                if is_bytes
                else _in_units(values, 1000, ("", "K", "M"))
            )
            label = f" {title:<22}" if not name else f"       from {name:<11}"
            lines.append("|" + label + "|" + "|".join(cells) + "|")
    lines.append(thin)
    for title, key in (
        ("Oversize allocations", "oversize_allocations"),
        ("Oversize GPU segments", "oversize_segments"),
    ):
        values = [stats[f"{key}.{column}"] for column in _COLUMNS]
        lines.append(
            "|" + f" {title:<22}|" + "|".join(_in_units(values, 1000, ("", "K", "M"))) + "|"
        )
        lines.append(thin)
    lines[-1] = rule
    return "\n".join(lines) + "\n"
