"""A tensor as text, in PyTorch's format: how Python asks the core for it."""

from math import inf

from . import _C

_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, inf, 3, 80)}


class _Options:
    precision, threshold, edgeitems, linewidth = _PROFILES["default"]
    sci_mode = None


PRINT_OPTS = _Options()


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
):
    """How tensors are printed. What is not given stays, but for sci_mode, which is then chosen."""
    o = PRINT_OPTS
    if profile in _PROFILES:
        o.precision, o.threshold, o.edgeitems, o.linewidth = _PROFILES[profile]
    if precision is not None:
        o.precision = precision
    if threshold is not None:
        o.threshold = threshold
    if edgeitems is not None:
        o.edgeitems = edgeitems
    if linewidth is not None:
        o.linewidth = linewidth
    o.sci_mode = sci_mode


def tensor_str(self, contents=None):
    from .nn.parameter import Parameter

    is_plain = type(self) in (_C.Tensor, Parameter)
    o = PRINT_OPTS
    text = _C._tensor_text(
        self,
        "tensor" if is_plain else type(self).__name__,
        contents,
        o.precision,
        o.threshold,
        o.edgeitems,
        o.linewidth,
        o.sci_mode,
    )
    return f"Parameter({text})" if isinstance(self, Parameter) and not is_plain else text
