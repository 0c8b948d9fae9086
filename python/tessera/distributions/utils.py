"""What distributions share."""

from numbers import Number

import tessera as torch


def broadcast_all(*values):
    """Numbers and tensors as tensors of one shape."""
    if not all(isinstance(v, (torch.Tensor, Number)) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
            "__torch_function__."
        )
    like = next((v for v in values if isinstance(v, torch.Tensor)), None)
    options = {} if like is None else {"dtype": like.dtype, "device": like.device}
    if like is not None and not like.is_floating_point():
        options["dtype"] = torch.get_default_dtype()
    made = [v if isinstance(v, torch.Tensor) else torch.tensor(v, **options) for v in values]
    if like is None:
        made = [t.to(torch.get_default_dtype()) for t in made]
    return torch.broadcast_tensors(*made)


def clamp_probs(probs):
    """Away from 0 and 1, so that their logarithms are finite."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits, is_binary=False):
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, dim=-1)


def probs_to_logits(probs, is_binary=False):
    clamped = clamp_probs(probs)
    return torch.log(clamped) - torch.log1p(-clamped) if is_binary else torch.log(clamped)


class lazy_property:
    """Computed when it is first asked for, then kept."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self._name = wrapped.__name__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self._name, value)
        return value


def standard_normal(shape, dtype, device):
    return torch.normal(
        torch.zeros(shape, dtype=dtype, device=device),
        torch.ones(shape, dtype=dtype, device=device),
    )


def sum_rightmost(value, dims):
    """The sum over the last dimensions."""
    return value if dims == 0 else value.flatten(value.dim() - dims).sum(-1)
