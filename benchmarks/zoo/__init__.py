"""Model definitions of benchmarks/models.py, written for `import torch`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Workload:
    """One row of the table: a model, its batch and how a step runs."""

    model: Any
    step: Callable[[Any], Any]  # takes the (possibly compiled) model, returns the loss or output
    training: bool = True
    dtype: Any = None  # autocast dtype, None for float32
    optimizer: Any = None
    modules: tuple = ()  # further modules, trained by `step` itself
    items: int = 0  # images or tokens in a step
    unit: str = ""
