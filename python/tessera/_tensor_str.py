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


def _contents(tensor, indent):
    o = options
    return _C._tensor_contents(
        tensor, indent, o.precision, o.threshold, o.edgeitems, o.linewidth, o.sci_mode
    )


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
