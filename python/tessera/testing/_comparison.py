"""assert_close: tensors, numbers and containers of them, with PyTorch's messages."""

import cmath
from collections.abc import Mapping, Sequence
from numbers import Number

from .. import _C

Tensor = _C.Tensor
# rtol and atol; of other dtypes numbers must be equal.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


class _Mismatch(Exception):
    """What differs, and in which item of the containers."""

    def __init__(self, text, items=(), kind=AssertionError):
        super().__init__(text)
        self.items, self.kind = items, kind

    def message(self):
        where = "".join(str([item]) for item in self.items)
        return str(self) + (f"\n\nThe failure occurred for item {where}" if where else "")


class _Options:
    def __init__(self, rtol, atol, equal_nan, device, dtype, layout, stride, subclasses):
        if (rtol is None) != (atol is None):
            raise ValueError(
                "rtol and atol must both be specified or both be unspecified, but got "
                f"rtol={rtol} and atol={atol}."
            )
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.check_device, self.check_dtype = device, dtype
        self.check_layout, self.check_stride = layout, stride
        self.allow_subclasses = subclasses

    def tolerances(self, *dtypes):
        if self.rtol is not None:
            return float(self.rtol), float(self.atol)
        pairs = [_TOLERANCES.get(str(d).removeprefix("torch."), (0.0, 0.0)) for d in dtypes]
        return max(p[0] for p in pairs), max(p[1] for p in pairs)


def _summary(what, first, absolute, relative, rtol, atol, at=None):
    """PyTorch's text on values that differ; `at` holds the places of the differences."""
    exact = rtol == 0 and atol == 0
    text = f"{what} are not {'equal' if exact else 'close'}!\n\n{first}\n"
    for i, (kind, value, tolerance) in enumerate(
        (("absolute", absolute, atol), ("relative", relative, rtol))
    ):
        text += f"{kind.title()} difference: {value}" if at is None else ""
        text += "" if at is None else f"Greatest {kind} difference: {value} at index {at[i]}"
        text += "\n" if exact else f" (up to {tolerance} allowed)\n"
    return text.strip()


def _scalars(actual, expected, rtol, atol):
    absolute = abs(actual - expected)
    relative = float("inf") if expected == 0 else absolute / abs(expected)
    first = f"Expected {expected} but got {actual}."
    return _summary("Scalars", first, absolute, relative, rtol, atol)


def _place(flat, shape):
    place = []
    for n in reversed(shape):
        flat, at = divmod(flat, n)
        place.append(at)
    return tuple(reversed(place))


def _attributes(actual, expected, options):
    pairs = [("shape", True), ("layout", options.check_layout), ("device", options.check_device)]
    pairs.append(("dtype", options.check_dtype))
    for name, asked in pairs:
        a, b = getattr(actual, name), getattr(expected, name)
        if asked and a != b:
            raise _Mismatch(f"The values for attribute '{name}' do not match: {a} != {b}.")
    if options.check_stride and actual.stride() != expected.stride():
        raise _Mismatch(
            "The values for attribute 'stride()' do not match: "
            f"{actual.stride()} != {expected.stride()}."
        )


def _compare_tensors(actual, expected, options):
    _attributes(actual, expected, options)
    if actual.device.type == "meta" or expected.device.type == "meta":
        raise NotImplementedError("Comparing meta tensors is currently not supported")
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    common = _C.promote_types(actual.dtype, expected.dtype)
    actual, expected = (t.detach().cpu().to(common) for t in (actual, expected))
    count, absolute, at, relative, relative_at = _C._mismatch(
        actual, expected, rtol, atol, options.equal_nan
    )
    if not count:
        return
    if actual.dim() == 0:
        raise _Mismatch(_scalars(actual.item(), expected.item(), rtol, atol))
    total = actual.numel()
    first = f"Mismatched elements: {count} / {total} ({count / total:.1%})"
    if not (actual.is_floating_point() or actual.is_complex()):
        absolute = int(absolute)
    places = _place(at, actual.shape), _place(relative_at, actual.shape)
    raise _Mismatch(_summary("Tensor-likes", first, absolute, relative, rtol, atol, places))


def _dtype_of(number):
    kind = type(number)
    return {int: "int64", float: "float64", complex: "complex128"}.get(kind, "float64")


def _compare_numbers(actual, expected, options):
    if options.check_dtype and type(actual) is not type(expected):
        raise _Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    rtol, atol = options.tolerances(_dtype_of(actual), _dtype_of(expected))
    if actual == expected:
        return
    if options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return
    difference = abs(actual - expected)
    if cmath.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    raise _Mismatch(_scalars(actual, expected, rtol, atol))


def _is_bool(value):
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _is_number(value):
    return isinstance(value, Number) and not _is_bool(value)


def _as_tensor(value):
    if isinstance(value, Tensor):
        return value
    import sys

    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _C.as_tensor(value)
    return None


def _compare_sequences(actual, expected, options, items):
    if len(actual) != len(expected):
        raise _Mismatch(
            f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", items
        )
    for i, (a, b) in enumerate(zip(actual, expected)):
        _compare(a, b, options, (*items, i))


def _compare_mappings(actual, expected, options, items):
    lacking, added = set(expected) - set(actual), set(actual) - set(expected)
    if lacking or added:
        raise _Mismatch(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(lacking, key=str)}\n"
            f"Additional keys in the actual mapping: {sorted(added, key=str)}",
            items,
        )
    keys = list(expected)
    try:
        keys.sort()
    except TypeError:
        pass
    for key in keys:
        _compare(actual[key], expected[key], options, (*items, key))


def _compare(actual, expected, options, items):
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return _compare_mappings(actual, expected, options, items)
    sequences = isinstance(actual, Sequence) and isinstance(expected, Sequence)
    if sequences and not isinstance(actual, str) and not isinstance(expected, str):
        return _compare_sequences(actual, expected, options, items)
    try:
        _compare_leaves(actual, expected, options)
    except _Mismatch as error:
        raise _Mismatch(str(error), items, error.kind) from None


def _compare_leaves(actual, expected, options):
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(f"None mismatch: {actual} is not {expected}")
    elif _is_bool(actual) and _is_bool(expected):
        if bool(actual) is not bool(expected):
            raise _Mismatch(f"Booleans mismatch: {actual} is not {expected}")
    elif _is_number(actual) and _is_number(expected):
        _compare_numbers(actual, expected, options)
    else:
        tensors = _as_tensor(actual), _as_tensor(expected)
        allowed = related if options.allow_subclasses else type(actual) is type(expected)
        if None in [t if t is None else 0 for t in tensors] or not allowed:
            raise _Mismatch(
                "No comparison pair was able to handle inputs of type "
                f"{type(actual)} and {type(expected)}.",
                kind=TypeError,
            )
        _compare_tensors(*tensors, options)


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raises AssertionError unless both agree within the tolerances of their dtypes."""
    options = _Options(
        rtol,
        atol,
        equal_nan,
        check_device,
        check_dtype,
        check_layout,
        check_stride,
        allow_subclasses,
    )
    try:
        _compare(actual, expected, options, ())
    except _Mismatch as error:
        text = error.message()
        if msg is not None and error.kind is AssertionError:
            text = msg(text) if callable(msg) else msg
        raise error.kind(text) from None


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """PyTorch's older form of assert_close."""
    if not isinstance(actual, Tensor):
        actual = _C.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = _C.tensor(expected, dtype=actual.dtype)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        msg=msg or None,
    )
