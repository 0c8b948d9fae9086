"""AdamW, where PyTorch keeps it."""

from .adam import AdamW

__all__ = ["AdamW"]
