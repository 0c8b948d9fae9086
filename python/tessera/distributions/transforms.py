"""Invertible functions, with the logarithm of how much they stretch."""

import math

import tessera as torch

from . import constraints
from .utils import sum_rightmost


def _alike(a, b):
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return bool((torch.as_tensor(a) == torch.as_tensor(b)).all())
    return a == b


class Transform:
    """y = t(x), x = t.inv(y)."""

    # Names of what one of its type may differ in from another; None: each is only like itself.
    _told_apart_by = None
    bijective = False
    domain = codomain = constraints.real

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._last = None

    @property
    def event_dim(self):
        return max(self.domain.event_dim, self.codomain.event_dim)

    @property
    def inv(self):
        return _Inverse(self)

    @property
    def sign(self):
        raise NotImplementedError

    def __call__(self, x):
        if self._cache_size and self._last is not None and self._last[0] is x:
            return self._last[1]
        y = self._call(x)
        if self._cache_size:
            self._last = x, y
        return y

    def _inv_call(self, y):
        if self._cache_size and self._last is not None and self._last[1] is y:
            return self._last[0]
        x = self._inverse(y)
        if self._cache_size:
            self._last = x, y
        return x

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        raise NotImplementedError

    def forward_shape(self, shape):
        return shape

    inverse_shape = forward_shape

    def __eq__(self, other):
        if self is other or self._told_apart_by is None or type(self) is not type(other):
            return self is other
        return all(_alike(getattr(self, n), getattr(other, n)) for n in self._told_apart_by)

    def __hash__(self):
        return id(self) if self._told_apart_by is None else hash(type(self))

    def __repr__(self):
        return type(self).__name__ + "()"


class _Inverse(Transform):
    _told_apart_by = ("_forward",)

    def __init__(self, transform):
        super().__init__(transform._cache_size)
        self._forward = transform

    bijective = property(lambda self: self._forward.bijective)
    domain = property(lambda self: self._forward.codomain)
    codomain = property(lambda self: self._forward.domain)
    inv = property(lambda self: self._forward)
    sign = property(lambda self: self._forward.sign)

    def __call__(self, x):
        return self._forward._inv_call(x)

    def _inv_call(self, y):
        return self._forward(y)

    def log_abs_det_jacobian(self, x, y):
        return -self._forward.log_abs_det_jacobian(y, x)


class ComposeTransform(Transform):
    """One after the other, the first first."""

    _told_apart_by = ("parts",)

    def __init__(self, parts, cache_size=0):
        self.parts = list(parts)
        super().__init__(cache_size)

    bijective = property(lambda self: all(part.bijective for part in self.parts))
    domain = property(lambda self: self.parts[0].domain if self.parts else constraints.real)
    codomain = property(lambda self: self.parts[-1].codomain if self.parts else constraints.real)
    event_dim = property(lambda self: max((part.event_dim for part in self.parts), default=0))

    @property
    def sign(self):
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self):
        return ComposeTransform([part.inv for part in reversed(self.parts)], self._cache_size)

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y):
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        total = 0
        for part in self.parts:
            after = part(x)
            here = part.log_abs_det_jacobian(x, after)
            total = total + sum_rightmost(here, self.event_dim - part.event_dim)
            x = after
        return total if self.parts else torch.zeros_like(x)


class AffineTransform(Transform):
    _told_apart_by = ("loc", "scale", "event_dim")
    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim
        if event_dim:
            self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    event_dim = property(lambda self: self._event_dim)

    @property
    def sign(self):
        if isinstance(self.scale, torch.Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        if isinstance(self.scale, torch.Tensor):
            log = self.scale.abs().log().expand(torch.broadcast_shapes(x.shape, self.scale.shape))
        else:
            log = torch.full_like(x, math.log(abs(self.scale)))
        return sum_rightmost(log, self._event_dim)


class ExpTransform(Transform):
    _told_apart_by = ()
    bijective = True
    codomain = constraints.positive
    sign = 1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    _told_apart_by = ("exponent",)
    bijective = True
    domain = codomain = constraints.positive

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        self.exponent = torch.as_tensor(exponent)

    sign = property(lambda self: self.exponent.sign())

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(Transform):
    _told_apart_by = ()
    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def _call(self, x):
        limits = torch.finfo(x.dtype)
        return torch.clamp(torch.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)

    def _inverse(self, y):
        limits = torch.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -torch.nn.functional.softplus(-x) - torch.nn.functional.softplus(x)


class TanhTransform(Transform):
    _told_apart_by = ()
    bijective = True
    codomain = constraints.interval(-1.0, 1.0)
    sign = 1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - torch.nn.functional.softplus(-2.0 * x))


class SoftplusTransform(Transform):
    _told_apart_by = ()
    bijective = True
    codomain = constraints.positive
    sign = 1

    def _call(self, x):
        return torch.nn.functional.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -torch.nn.functional.softplus(-x)


class AbsTransform(Transform):
    _told_apart_by = ()
    codomain = constraints.nonnegative

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class SoftmaxTransform(Transform):
    _told_apart_by = ()
    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        return torch.softmax(x, -1)

    def _inverse(self, y):
        return y.log()


identity_transform = ComposeTransform([])
