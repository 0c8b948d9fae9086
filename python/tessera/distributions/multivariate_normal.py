"""The normal distribution of vectors."""

import math

import tessera as torch

from . import constraints
from .distribution import Distribution
from .utils import lazy_property, standard_normal


def _solved(lower, vectors):
    """Vectors times the inverse of a lower triangular matrix, for batches that broadcast."""
    return torch.linalg.solve_triangular(lower, vectors.unsqueeze(-1), upper=False).squeeze(-1)


class MultivariateNormal(Distribution):
    """By its mean, and one of covariance, precision and the covariance's Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc,
        covariance_matrix=None,
        precision_matrix=None,
        scale_tril=None,
        validate_args=None,
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch + matrix.shape[-2:]))
        self.loc = loc.expand(batch + loc.shape[-1:])
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = torch.linalg.cholesky(matrix)
        else:
            flipped = torch.linalg.cholesky(torch.flip(matrix, (-2, -1)))
            upper = torch.flip(flipped, (-2, -1)).mT
            identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
            self._unbroadcasted_scale_tril = torch.linalg.solve_triangular(
                upper, identity, upper=False
            )

    @lazy_property
    def scale_tril(self):
        lower = self._unbroadcasted_scale_tril
        return lower.expand(self._batch_shape + lower.shape[-2:])

    @lazy_property
    def covariance_matrix(self):
        lower = self._unbroadcasted_scale_tril
        return (lower @ lower.mT).expand(self._batch_shape + lower.shape[-2:])

    @lazy_property
    def precision_matrix(self):
        lower = self._unbroadcasted_scale_tril
        return torch.cholesky_inverse(lower).expand(self._batch_shape + lower.shape[-2:])

    @property
    def mean(self):
        return self.loc

    mode = mean

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self.loc.shape)

    def expand(self, batch_shape, _instance=None):
        names = ("loc", "covariance_matrix", "precision_matrix", "scale_tril")
        new = self._expanded(batch_shape, names, _instance)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    def rsample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        drawn = standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        self._validate_sample(value)
        distance = _solved(self._unbroadcasted_scale_tril, value - self.loc).pow(2).sum(-1)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - self._half_log_det()

    def entropy(self):
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (constant + self._half_log_det()).expand(self._batch_shape)
