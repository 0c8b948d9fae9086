"""See gamma."""

from .gamma import Chi2 as Chi2
