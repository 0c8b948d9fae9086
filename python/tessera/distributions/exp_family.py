"""See distribution."""

from .distribution import ExponentialFamily as ExponentialFamily
