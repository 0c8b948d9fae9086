"""A choice as a vector with one 1."""

import tessera as torch

from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class OneHotCategorical(Distribution):
    """Categorical, with samples as one-hot vectors."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(
            self._categorical.batch_shape,
            self._categorical.param_shape[-1:],
            validate_args=validate_args,
        )

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    mean = property(lambda self: self._categorical.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))
    param_shape = property(lambda self: self._categorical.param_shape)

    @property
    def mode(self):
        return torch.nn.functional.one_hot(self.probs.argmax(-1), self.event_shape[0]).to(
            self.probs
        )

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(batch_shape, (), _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    def sample(self, sample_shape=torch.Size()):
        drawn = self._categorical.sample(sample_shape)
        return torch.nn.functional.one_hot(drawn, self.event_shape[0]).to(self.probs)

    def log_prob(self, value):
        self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self.event_shape[0]
        values = torch.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """Its gradient is as if the sample were the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape=torch.Size()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
