"""A tensor as text, in PyTorch's format."""

import math

from . import _C

_float32, _int64, _bool = (_C.dtypes[n] for n in ("float32", "int64", "bool"))


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None

    def set(self, precision, threshold, edgeitems, linewidth, profile, sci_mode):
        profiles = {
            "default": (4, 1000, 3, 80),
            "short": (2, 1000, 2, 80),
            "full": (4, math.inf, 3, 80),
        }
        if profile is not None:
            self.precision, self.threshold, self.edgeitems, self.linewidth = profiles[profile]
        for name, value in (
            ("precision", precision),
            ("threshold", threshold),
            ("edgeitems", edgeitems),
            ("linewidth", linewidth),
        ):
            if value is not None:
                setattr(self, name, value)
        self.sci_mode = sci_mode


options = _Options()


def _flat(values):
    if not isinstance(values, list):
        return [values]
    return [x for v in values for x in _flat(v)]


class _Formatter:
    """How wide the numbers are, and whether they need a fraction or an exponent."""

    def __init__(self, values, dtype):
        self.floating = dtype.is_floating_point
        self.whole = True
        self.sci = False
        # Zeros, nan and inf do not count: PyTorch aligns by the other numbers.
        counted = values
        if self.floating:
            counted = [v for v in values if math.isfinite(v) and v != 0]
            self._choose([abs(v) for v in counted])
        self.width = max((len(self.text(v)) for v in counted), default=1)
        if self.floating and options.sci_mode is not None:
            self.sci = options.sci_mode

    def _choose(self, sizes):
        if not sizes:
            return
        largest, smallest = max(sizes), min(sizes)
        self.whole = all(v == math.ceil(v) for v in sizes)
        self.sci = largest / smallest > 1000.0 or largest > 1.0e8
        if not self.whole and smallest < 1.0e-4:
            self.sci = True

    def text(self, value):
        if not self.floating:
            return str(value)
        if self.sci:
            return f"{value:.{options.precision}e}"
        if self.whole:
            text = f"{value:.0f}"
            return text if not math.isfinite(value) else text + "."
        return f"{value:.{options.precision}f}"

    def padded(self, value):
        text = self.text(value)
        return " " * (self.width - len(text)) + text


def _gather(tensor, summarize):
    """The values that will be printed, as nested lists, None where some are left out."""
    if tensor.dim() == 0:
        return tensor.item()
    n, edge = tensor.shape[0], options.edgeitems
    if summarize and n > 2 * edge:
        if tensor.dim() == 1:
            return tensor[:edge].tolist() + [None] + tensor[n - edge :].tolist()
        rows = [*range(edge), None, *range(n - edge, n)]
        return [None if i is None else _gather(tensor[i], summarize) for i in rows]
    if tensor.dim() == 1 or not summarize:
        return tensor.tolist()
    return [_gather(tensor[i], summarize) for i in range(n)]


def _vector(values, indent, formatter):
    element = formatter.width + 2
    per_line = max(1, (options.linewidth - indent) // element)
    texts = [" ..." if v is None else formatter.padded(v) for v in values]
    lines = [texts[i : i + per_line] for i in range(0, len(texts), per_line)] or [[]]
    return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"


def _nested(values, dims, indent, formatter):
    if dims == 0:
        return formatter.padded(values)
    if dims == 1:
        return _vector(values, indent, formatter)
    parts = ["..." if v is None else _nested(v, dims - 1, indent + 1, formatter) for v in values]
    return "[" + ("," + "\n" * (dims - 1) + " " * (indent + 1)).join(parts) + "]"


def _contents(tensor, indent):
    if tensor.dtype == _C.dtypes["bfloat16"] or tensor.dtype == _C.dtypes["float16"]:
        tensor = tensor.float()
    summarize = tensor.numel() > options.threshold
    if tensor.is_cuda and not summarize:
        tensor = tensor.cpu()
    values = _gather(tensor, summarize)
    shown = [v for v in _flat(values) if v is not None]
    formatter = _Formatter(shown, tensor.dtype)
    return _nested(values, tensor.dim(), indent, formatter)


def _with_suffixes(text, suffixes, indent):
    """The closing of `tensor(...`, on a new line where the last one would be too long."""
    last = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if last + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * indent + suffix
            last = indent + len(suffix)
        else:
            text += ", " + suffix
            last += len(suffix) + 2
    return text + ")"


def tensor_str(self, contents=None):
    plain = self.detach()
    prefix = "tensor(" if type(self) in (_C.Tensor, _parameter()) else type(self).__name__ + "("
    indent = len(prefix)
    suffixes = []
    if self.is_cuda:
        suffixes.append(f"device='{self.device}'")
    usual = self.dtype in (_C.get_default_dtype(), _int64, _bool)
    if self.numel() == 0:
        if self.dim() != 1:
            suffixes.append(f"size={tuple(self.shape)}")
        if self.dtype != _C.get_default_dtype():
            suffixes.append(f"dtype={self.dtype}")
        text = "[]"
    else:
        if not usual:
            suffixes.append(f"dtype={self.dtype}")
        text = _contents(plain, indent)
    if contents is not None:
        text = contents
    if self.grad_fn is not None:
        suffixes.append(f"grad_fn=<{self.grad_fn.name()}>")
    elif self.requires_grad:
        suffixes.append("requires_grad=True")
    return _with_suffixes(prefix + text, suffixes, indent)


def _parameter():
    from .nn.parameter import Parameter

    return Parameter
