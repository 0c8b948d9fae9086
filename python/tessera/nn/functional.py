"""Functions of neural networks.

Most are operators: a record that is called `nn.functional.x` appears here as `x`. Written in
Python is only what chooses between operators or takes Python's own objects. A record goes before a
function of the same name.
"""

from .. import _C
from .._missing import module_getattr
from .._operators import functions

Tensor = _C.Tensor
_ops = _C.ops


def _implicit_dim(name, ndim, stacklevel):
    import warnings

    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def relu(input, inplace=False):
    return _ops["relu_" if inplace else "relu"](input)


def gelu(input, approximate="none"):
    return _ops["gelu"](input, approximate=approximate)


def sigmoid(input):
    return input.sigmoid()


def tanh(input):
    return input.tanh()


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


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample that is nearly one class; with hard it is one, and only its gradient is soft."""
    import tessera as torch

    gumbels = -torch.empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = torch.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


def triplet_margin_with_distance_loss(
    anchor,
    positive,
    negative,
    *,
    distance_function=None,
    margin=1.0,
    swap=False,
    reduction="mean",
):
    import tessera as torch

    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if distance_function is None:
        distance_function = _this().pairwise_distance
    dims = (anchor.dim(), positive.dim(), negative.dim())
    if len(set(dims)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {dims[0]}D, positive {dims[1]}D, and negative "
            f"{dims[2]}D inputs"
        )
    near = distance_function(anchor, positive)
    far = distance_function(anchor, negative)
    if swap:
        far = torch.minimum(far, distance_function(positive, negative))
    loss = torch.clamp_min(margin + near - far, 0)
    return loss if reduction == "none" else getattr(loss, reduction)()


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    return _this().interpolate(input, size, scale_factor, mode, align_corners)


def multi_head_attention_forward(*args, **kwargs):
    """See nn._attention; loaded when it is first used."""
    from ._attention import multi_head_attention_forward as loaded

    globals()["multi_head_attention_forward"] = loaded
    return loaded(*args, **kwargs)


def _this():
    import sys

    return sys.modules[__name__]


def __dir__():
    return sorted(globals())


globals().update(functions("nn.functional"))
__getattr__ = module_getattr(__name__)
