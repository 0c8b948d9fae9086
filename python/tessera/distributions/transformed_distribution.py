"""What a distribution becomes under transforms."""

import tessera as torch

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost


class TransformedDistribution(Distribution):
    """Samples of the base distribution, transformed."""

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if isinstance(transforms, Transform):
            transforms = [transforms]
        if not isinstance(transforms, list) or not all(
            isinstance(t, Transform) for t in transforms
        ):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        self.transforms = transforms
        whole = ComposeTransform(transforms)
        missing = whole.event_dim - len(base_distribution.event_shape)
        if missing > 0:
            base_distribution = Independent(base_distribution, missing)
        self.base_dist = base_distribution
        shape = base_distribution.batch_shape + base_distribution.event_shape
        split = len(shape) - max(whole.event_dim, len(base_distribution.event_shape))
        super().__init__(shape[:split], shape[split:], validate_args=validate_args)

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        extra = len(self.event_shape) - support.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(TransformedDistribution, _instance)
        new.transforms = self.transforms
        new.base_dist = self.base_dist.expand(batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _transformed(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=torch.Size()):
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        event_dim, total, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform._inv_call(y)
            here = transform.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(here, event_dim - transform.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return total + sum_rightmost(base, event_dim - len(self.base_dist.event_shape))

    def _direction(self, probability):
        """Of a function that falls, the cumulative probability counts from the other end."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return probability
        return sign * (probability - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform._inv_call(value)
        return self._direction(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._transformed(self.base_dist.icdf(self._direction(value)))

    def __repr__(self):
        return f"{type(self).__name__}({self.base_dist}, {self.transforms})"
