"""The Poisson distribution."""

import tessera as torch

from . import constraints
from .distribution import ExponentialFamily
from .utils import broadcast_all


class Poisson(ExponentialFamily):
    """How often something happens that happens at this rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.rate

    variance = mean

    @property
    def mode(self):
        return self.rate.floor()

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("rate",), _instance)

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()
