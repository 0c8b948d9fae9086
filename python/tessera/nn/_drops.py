"""Dropout of whole channels, and the kind that keeps mean and variance."""

import warnings

from .. import _C

_ops = _C.ops


def _drop(name, input, p, training, inplace):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return _ops[name + "_" if inplace else name](input, p, training)


def _channels(input, p, training, inplace, batched):
    """Without a batch, channels are those of a batch of one."""
    if batched:
        return _drop("feature_dropout", input, p, training, inplace)
    out = _drop("feature_dropout", input.unsqueeze(0), p, training, inplace)
    return input if inplace else out.squeeze(0)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of sequences, (N, C, L) or (C, L)."""
    dim = input.dim()
    if dim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {dim}D input: channels of "
            "sequences, (N, C, L) or (C, L)"
        )
    return _channels(input, p, training, inplace, dim == 3)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of images, (N, C, H, W)."""
    dim = input.dim()
    if dim != 4:
        read = "; it is read as (N, C, L), for which there is dropout1d" if dim == 3 else ""
        warnings.warn(f"dropout2d: Received a {dim}-D input, which is deprecated{read}")
    return _drop("feature_dropout", input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of volumes, (N, C, D, H, W) or (C, D, H, W)."""
    dim = input.dim()
    if dim not in (4, 5):
        warnings.warn(f"dropout3d: Received a {dim}-D input, which is deprecated")
    return _channels(input, p, training, inplace, dim != 4)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout after which mean and variance are as before, for SELU."""
    return _drop("alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels."""
    return _drop("feature_alpha_dropout", input, p, training, inplace)
