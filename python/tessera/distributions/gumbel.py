"""The Gumbel distribution."""

import math

import tessera as torch

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

_EULER = 0.57721566490153286060


class Gumbel(Distribution):
    """The largest of many: loc - scale * log(-log(u)) of a uniform u."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mean = property(lambda self: self.loc + self.scale * _EULER)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("loc", "scale"), _instance)

    def rsample(self, sample_shape=torch.Size()):
        limits, shape = torch.finfo(self.loc.dtype), self._extended_shape(sample_shape)
        u = torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        u = limits.tiny + u * (1 - limits.eps - limits.tiny)
        return self.loc - self.scale * (-u.log()).log()

    def log_prob(self, value):
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def cdf(self, value):
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value):
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self):
        return self.scale.log() + (1 + _EULER)
