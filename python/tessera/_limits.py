"""torch.finfo and torch.iinfo: what the dtypes can hold."""

from . import _C

# Digits of the fraction, lowest exponent of a normal number, largest number, decimal digits.
_FLOATS = {
    "float16": (10, -14, 65504.0, 3),
    "bfloat16": (7, -126, (2 - 2.0**-7) * 2.0**127, 2),
    "float32": (23, -126, (2 - 2.0**-23) * 2.0**127, 6),
    "float64": (52, -1022, (2 - 2.0**-52) * 2.0**1023, 15),
}
_COMPLEX = {"complex64": "float32", "complex128": "float64"}


class _Info:
    def __eq__(self, other):
        return type(self) is type(other) and self.dtype == other.dtype

    def __hash__(self):
        return hash((type(self).__name__, self.dtype))


def _name(dtype, kind):
    if not isinstance(dtype, _C.dtype):
        raise TypeError(
            f"{kind}(): argument 'type' must be torch.dtype, not {type(dtype).__name__}"
        )
    return str(dtype).removeprefix("torch.")


class finfo(_Info):
    """The limits of a floating dtype, by default of the default one."""

    def __init__(self, type=None):
        name = _name(_C.get_default_dtype() if type is None else type, "finfo")
        name = _COMPLEX.get(name, name)
        if name not in _FLOATS:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                f"'{type}'"
            )
        digits, lowest, self.max, decimals = _FLOATS[name]
        self.bits = 8 * _C.dtypes[name].itemsize
        self.eps = 2.0**-digits
        self.min = -self.max
        self.smallest_normal = self.tiny = 2.0**lowest
        self.resolution = float(f"1e-{decimals:02d}")
        self.dtype = name

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo(_Info):
    """The limits of an integer dtype."""

    def __init__(self, type):
        name = _name(type, "iinfo")
        if name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if not name.startswith(("int", "uint")):
            raise TypeError(
                f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'"
            )
        self.bits = 8 * type.itemsize
        signed = type.is_signed
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        self.max = 2 ** (self.bits - signed) - 1
        self.dtype = name

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


for _class in (finfo, iinfo):
    _class.__module__ = "tessera"
