"""Optimizers: the arithmetic is in operators that step all parameters of a group at once."""

from .._lazy import lazy_names
from .optimizer import Optimizer

_FILES = {
    "_adafactor": "Adafactor",
    "_muon": "Muon",
    "adadelta": "Adadelta",
    "adagrad": "Adagrad",
    "adam": "Adam",
    "adamax": "Adamax",
    "adamw": "AdamW",
    "asgd": "ASGD",
    "lbfgs": "LBFGS",
    "nadam": "NAdam",
    "optimizer": "Optimizer",
    "radam": "RAdam",
    "rmsprop": "RMSprop",
    "rprop": "Rprop",
    "sgd": "SGD",
    "sparse_adam": "SparseAdam",
}

__getattr__, __dir__, __all__ = lazy_names(__name__, _FILES)
