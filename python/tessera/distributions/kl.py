"""How much one distribution differs from another."""

import tessera as torch

from .bernoulli import Bernoulli
from .categorical import Categorical
from .exponential import Exponential
from .gamma import Beta, Dirichlet, Gamma
from .independent import Independent
from .laplace import Laplace
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import sum_rightmost

_KL_REGISTRY = {}


def register_kl(type_p, type_q):
    """A decorator: the function computes kl_divergence() of these types."""

    def register(function):
        _KL_REGISTRY[type_p, type_q] = function
        return function

    return register


def _found(type_p, type_q):
    """The function of the nearest types that both derive from."""
    fitting = [
        (type_p.__mro__.index(p) + type_q.__mro__.index(q), function)
        for (p, q), function in _KL_REGISTRY.items()
        if issubclass(type_p, p) and issubclass(type_q, q)
    ]
    if not fitting:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type_p.__name__} and q type "
            f"{type_q.__name__}"
        )
    return min(fitting, key=lambda pair: pair[0])[1]


def kl_divergence(p, q):
    """The mean over samples of p of log p - log q."""
    return _found(type(p), type(q))(p, q)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be "
            "computed"
        )
    a, b = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    n = p.event_shape[0]
    a, b = a.expand(batch + (n, n)), b.expand(batch + (n, n))
    trace = torch.linalg.solve_triangular(b, a, upper=False).pow(2).sum((-2, -1))
    apart = (q.loc - p.loc).unsqueeze(-1)
    distance = torch.linalg.solve_triangular(b, apart, upper=False).pow(2).sum((-2, -1))
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + distance - n)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    softplus = torch.nn.functional.softplus
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = torch.where(q.probs == 0, torch.inf, one)
    one = torch.where(p.probs == 0, 0.0, one)
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zero = torch.where(q.probs == 1, torch.inf, zero)
    return one + torch.where(p.probs == 1, 0.0, zero)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = torch.where((q.probs == 0).expand_as(terms), torch.inf, terms)
    return torch.where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return torch.where((q.low > p.low) | (q.high < p.high), torch.inf, result)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    apart = (p.loc - q.loc).abs()
    ratio = p.scale / q.scale
    return -ratio.log() + apart / q.scale + ratio * torch.exp(-apart / p.scale) - 1


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    return (
        q.concentration * (p.rate / q.rate).log()
        + torch.lgamma(q.concentration)
        - torch.lgamma(p.concentration)
        + (p.concentration - q.concentration) * torch.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    first = total.lgamma() - b.sum(-1).lgamma()
    second = (a.lgamma() - b.lgamma()).sum(-1)
    third = ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)
    return first - second + third


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet(), q._dirichlet())


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms:
        raise NotImplementedError
    if p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)
