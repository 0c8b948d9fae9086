"""See gamma."""

from .gamma import Beta as Beta
