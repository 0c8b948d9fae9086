"""A mixture: which component a sample comes from is drawn first."""

import tessera as torch

from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """Components along the last dimension of the batch of one distribution."""

    arg_constraints = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        batch = component_distribution.batch_shape
        count = mixture_distribution.logits.shape[-1]
        if not batch or batch[-1] != count:
            raise ValueError(
                "`mixture_distribution component` does not equal "
                f"`component_distribution.batch_shape[-1]`: {count} and {tuple(batch)}"
            )
        self._num_component = count
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    @constraints.dependent_property
    def support(self):
        return self._component_distribution.support

    def expand(self, batch_shape, _instance=None):
        batch_shape = torch.Size(batch_shape)
        return type(self)(
            self._mixture_distribution.expand(batch_shape),
            self._component_distribution.expand(batch_shape + (self._num_component,)),
            validate_args=False,
        )

    def _weights(self):
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * len(self.event_shape))

    def _dim(self):
        return -1 - len(self.event_shape)

    @property
    def mean(self):
        return (self._weights() * self._component_distribution.mean).sum(self._dim())

    @property
    def variance(self):
        weights, components = self._weights(), self._component_distribution
        within = (weights * components.variance).sum(self._dim())
        apart = components.mean - self.mean.unsqueeze(self._dim())
        return within + (weights * apart.pow(2)).sum(self._dim())

    def cdf(self, value):
        of_each = self._component_distribution.cdf(value.unsqueeze(self._dim()))
        return (of_each * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value):
        self._validate_sample(value)
        spread = value.unsqueeze(self._dim())
        weights = torch.log_softmax(self._mixture_distribution.logits, dim=-1)
        return torch.logsumexp(self._component_distribution.log_prob(spread) + weights, dim=-1)

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            all_samples = self._component_distribution.sample(sample_shape)
            dim = len(torch.Size(sample_shape)) + len(self.batch_shape)
            index = chosen.reshape(chosen.shape + (1,) * (len(self.event_shape) + 1))
            shape = (*all_samples.shape[:dim], 1, *self.event_shape)
            return all_samples.gather(dim, index.expand(shape)).squeeze(dim)

    def __repr__(self):
        return (
            f"MixtureSameFamily(\n  {self._mixture_distribution},\n  "
            f"{self._component_distribution})"
        )
