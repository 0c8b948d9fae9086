"""Functions of neural networks, over the operators."""

from .. import _C
from .._missing import module_getattr
from .._operators import functions

_ops = _C.ops
globals().update(functions("nn.functional"))
gelu = _ops["gelu"]


def relu(input, inplace=False):
    return _ops["relu_" if inplace else "relu"](input)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        import warnings

        warnings.warn(
            "Implicit dimension choice for softmax has been deprecated. Change the call to include "
            "dim=X as an argument.",
            stacklevel=_stacklevel,
        )
        dim = 0 if input.dim() in (0, 1, 3) else 1
    return _ops["softmax"](input, dim, dtype=dtype)


def dropout(input, p=0.5, training=True, inplace=False):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return _ops["dropout_" if inplace else "dropout"](input, p, training)


def linear(input, weight, bias=None):
    out = input @ weight.t()
    return out if bias is None else out + bias


def mse_loss(input, target, reduction="mean"):
    difference = input - target
    squares = difference * difference
    if reduction == "none":
        return squares
    total = squares.sum()
    if reduction == "sum":
        return total
    if reduction != "mean":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return total / squares.numel()


__getattr__ = module_getattr(__name__)
