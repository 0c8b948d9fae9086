"""Gamma and what is made of it. Densities and moments are here; drawing is not yet."""

import tessera as torch

from . import constraints
from .distribution import ExponentialFamily
from .utils import broadcast_all


def no_draws(self, sample_shape=torch.Size()):
    raise NotImplementedError(
        f"samples of torch.distributions.{type(self).__name__} are not implemented in Tessera yet"
    )


class Gamma(ExponentialFamily):
    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    rsample = no_draws

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("concentration", "rate"), _instance)

    def log_prob(self, value):
        value = torch.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._validate_sample(value)
        return (
            torch.xlogy(self.concentration, self.rate)
            + torch.xlogy(self.concentration - 1, value)
            - self.rate * value
            - torch.lgamma(self.concentration)
        )

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + torch.lgamma(a) + (1.0 - a) * torch.digamma(a)


class Chi2(Gamma):
    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * torch.as_tensor(df, dtype=torch.get_default_dtype()), 0.5)

    df = property(lambda self: self.concentration * 2)


class Dirichlet(ExponentialFamily):
    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    rsample = no_draws

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        a = self.concentration
        return a * (total - a) / (total.pow(2) * (total + 1))

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("concentration",), _instance)

    def log_prob(self, value):
        self._validate_sample(value)
        a = self.concentration
        terms = torch.xlogy(a - 1.0, value).sum(-1)
        return terms + torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1)

    def entropy(self):
        a, k = self.concentration, self.concentration.size(-1)
        total = a.sum(-1)
        return (
            torch.lgamma(a).sum(-1)
            - torch.lgamma(total)
            - (k - total) * torch.digamma(total)
            - ((a - 1.0) * torch.digamma(a)).sum(-1)
        )


class Beta(ExponentialFamily):
    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    rsample = no_draws

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def expand(self, batch_shape, _instance=None):
        return self._expanded(batch_shape, ("concentration1", "concentration0"), _instance)

    def _dirichlet(self):
        both = torch.stack([self.concentration1, self.concentration0], -1)
        return Dirichlet(both, validate_args=False)

    def log_prob(self, value):
        self._validate_sample(value)
        return self._dirichlet().log_prob(torch.stack([value, 1.0 - value], -1))

    def entropy(self):
        return self._dirichlet().entropy()
