"""torch.FloatTensor and its kin: PyTorch's first constructors, one class for each dtype."""

from . import _C

Tensor = _C.Tensor

TITLES = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "Float",
    "float64": "Double",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


class tensortype(type):
    """The type of these classes: tensors of their dtype and place are their instances."""

    def __instancecheck__(cls, instance):
        return (
            isinstance(instance, Tensor)
            and instance.dtype == cls.dtype
            and instance.is_cuda == cls.is_cuda
        )

    def __call__(cls, *args, device=None):
        """FloatTensor(2, 3) is uninitialised, FloatTensor([1, 2]) holds these numbers."""
        place = _C.device("cuda" if cls.is_cuda else "cpu") if device is None else device
        first = args[0] if args else 0
        if len(args) <= 1 and isinstance(first, Tensor) and not isinstance(first, cls):
            raise TypeError(f"expected {cls.__qualname__} (got {first.type()})")
        if len(args) <= 1 and isinstance(first, Tensor):
            return first.detach()
        if isinstance(first, _C.Size):
            return _C.ops["empty"](first, dtype=cls.dtype, device=place)
        if len(args) <= 1 and not isinstance(first, int):
            if not hasattr(first, "__len__"):
                raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
            return _C.tensor(first, dtype=cls.dtype, device=place)
        return _C.ops["empty"](args or (0,), dtype=cls.dtype, device=place)

    def __repr__(cls):
        return f"<class '{cls.__module__}.{cls.__qualname__}'>"


def _make(dtype_name, title, on_cuda):
    name = f"{title}Tensor"
    module = "torch.cuda" if on_cuda else "torch"
    members = {"dtype": _C.dtypes[dtype_name], "is_cuda": on_cuda, "__module__": module}
    return tensortype(name, (), members)


HOST = {f"{t}Tensor": _make(d, t, False) for d, t in TITLES.items() if d in _C.dtypes}
CUDA = {f"{t}Tensor": _make(d, t, True) for d, t in TITLES.items() if d in _C.dtypes}
globals().update(HOST)


def type_name(tensor):
    """What Tensor.type() says: "torch.cuda.FloatTensor"."""
    title = TITLES[str(tensor.dtype).removeprefix("torch.")]
    return f"torch.{'cuda.' if tensor.is_cuda else ''}{title}Tensor"


def type_of(given):
    """The class of a name or class; raises ValueError for what names none."""
    if isinstance(given, tensortype):
        return given
    for prefix, classes in (("torch.cuda.", CUDA), ("torch.", HOST)):
        if isinstance(given, str) and given.startswith(prefix) and given[len(prefix) :] in classes:
            return classes[given[len(prefix) :]]
    raise ValueError(f"invalid type: '{given}'")


def set_default_tensor_type(t):
    """PyTorch's older form of set_default_dtype() and set_default_device()."""
    kind = type_of(t)
    if not kind.dtype.is_floating_point:
        raise TypeError(
            f"only floating-point types are supported as the default type, not {kind.dtype}"
        )
    _C.set_default_dtype(kind.dtype)
    _C.set_default_device("cuda" if kind.is_cuda else None)
