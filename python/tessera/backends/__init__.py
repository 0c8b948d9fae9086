"""What PyTorch's libraries are asked about: which are there, and how they are to work."""

from .._lazy import lazy_names

# Modules that load when they are first used; names of the package itself stand in none.
__getattr__, __dir__, __all__ = lazy_names(__name__, {})
