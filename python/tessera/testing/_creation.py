"""make_tensor: random tensors of every dtype, to test with."""

import math

from .. import _C

_RANGES = {"bool": (0, 2), "uint8": (0, 10)}  # others from -9 to 10 (integers) or 9


def _limits(dtype, low, high):
    name = str(dtype).removeprefix("torch.")
    floating = dtype.is_floating_point or dtype.is_complex
    usual = (-9, 9) if floating else _RANGES.get(name, (-9, 10))
    low = usual[0] if low is None else low
    high = usual[1] if high is None else high
    if any(isinstance(v, float) and v != v for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low > high or (low == high and not floating):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    from .._limits import finfo, iinfo

    if name == "bool":
        least, most = 0, 2
    elif floating:
        info = finfo(dtype)
        least, most = info.min, info.max
    else:
        info = iinfo(dtype)
        least, most = info.min, info.max + 1
    if high < least or low >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            f"only supports [{least}, {most})"
        )
    low, high = max(low, least), min(high, most)
    # The least integer that is not below `low`, and the least one that is not below `high`.
    return (low, high) if floating else (math.ceil(low), math.ceil(high))


def _real(shape, dtype, low, high):
    # In double: the range of two numbers may be more than the dtype holds.
    values = _C.ops["rand"](shape, dtype=_C.dtypes["float64"])
    spread = (values * high) - (values * low) + low
    made = spread.to(dtype)
    if low < high:
        # Rounding may give the upper bound, which does not belong to the range.
        ops = _C.ops
        below = ops["nextafter"](
            ops["full"]((), high, dtype=dtype), ops["full"]((), low, dtype=dtype)
        )
        made = ops["where"](made >= high, below, made)
    return made


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """A tensor of random numbers from `low` to below `high`."""
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous!r} and memory_format={memory_format!r}"
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"dtype={dtype!r}"
        )
    count = 1
    for n in shape:
        count *= n
    wide = noncontiguous and count > 1
    drawn = (*shape[:-1], 2 * shape[-1]) if wide else shape
    low, high = _limits(dtype, low, high)
    if dtype.is_complex:
        parts = _C.dtypes["float64" if dtype.itemsize == 16 else "float32"]
        pairs = _real((*drawn, 2), parts, low, high)
        strides = tuple(s // 2 for s in pairs.stride()[:-1])
        made = _C._over_storage(pairs, dtype, 0, drawn, strides)
    elif dtype.is_floating_point:
        made = _real(drawn, dtype, low, high)
    else:
        made = _C.ops["randint"](low, high, drawn).to(dtype)
    made = made.to(device)
    if wide:
        made = made[..., ::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        from .._limits import finfo

        floating = dtype.is_floating_point or dtype.is_complex
        made[made == 0] = finfo(dtype).tiny if floating else 1
    return made.requires_grad_() if requires_grad else made
