"""Distributions: samples, densities, entropies, and how much two of them differ."""

from .._lazy import lazy_names

_FILES = {
    "bernoulli": "Bernoulli",
    "categorical": "Categorical",
    "cauchy": "Cauchy",
    "distribution": "Distribution ExponentialFamily",
    "exponential": "Exponential",
    "gamma": "Beta Chi2 Dirichlet Gamma",
    "geometric": "Geometric",
    "gumbel": "Gumbel",
    "half_normal": "HalfNormal",
    "independent": "Independent",
    "kl": "kl_divergence register_kl",
    "laplace": "Laplace",
    "log_normal": "LogNormal",
    "mixture_same_family": "MixtureSameFamily",
    "multivariate_normal": "MultivariateNormal",
    "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough",
    "poisson": "Poisson",
    "transformed_distribution": "TransformedDistribution",
    "transforms": "AbsTransform AffineTransform ComposeTransform ExpTransform PowerTransform "
    "SigmoidTransform SoftmaxTransform SoftplusTransform TanhTransform Transform "
    "identity_transform",
    "uniform": "Uniform",
}

__getattr__, __dir__, __all__ = lazy_names(__name__, _FILES)
