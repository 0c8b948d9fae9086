"""See gamma."""

from .gamma import Dirichlet as Dirichlet
