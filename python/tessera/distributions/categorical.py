"""The categorical distribution, and the same with samples that are one-hot."""

import tessera as torch

from . import constraints
from ._logits import ByProbsOrLogits, only_one
from .distribution import Distribution


class Categorical(ByProbsOrLogits, Distribution):
    """A number below the size of the last dimension, with the probabilities along it."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        only_one(probs, logits)
        given = logits if probs is None else probs
        if given.dim() < 1:
            which = "logits" if probs is None else "probs"
            raise ValueError(f"`{which}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self):
        return torch.full(
            self._extended_shape(), float("nan"), dtype=self.probs.dtype, device=self.probs.device
        )

    variance = mean

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(batch_shape, ("probs", "logits"), _instance)
        new._num_events = self._num_events
        return new

    def sample(self, sample_shape=torch.Size()):
        count = torch.Size(sample_shape).numel()
        rows = self.probs.reshape(-1, self._num_events)
        drawn = torch.multinomial(rows, count, True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, logits = torch.broadcast_tensors(value, self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        lowest = torch.finfo(self.logits.dtype).min
        return -(self.logits.clamp(min=lowest) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = torch.arange(self._num_events, dtype=torch.long, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
