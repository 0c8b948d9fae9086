"""Several processes: not yet. It says so when asked, as PyTorch does where it was built without."""

from .._missing import module_getattr


def is_available():
    return False


def is_initialized():
    return False


def is_nccl_available():
    return False


is_gloo_available = is_mpi_available = is_ucc_available = is_nccl_available


def is_torchelastic_launched():
    """Was the program started by torchrun?"""
    import os

    return "TORCHELASTIC_RUN_ID" in os.environ


__getattr__ = module_getattr(__name__)
