"""Settings of the process: threads, determinism, precision, warnings."""

from . import _C

# ---- threads ---------------------------------------------------------------------------------


def get_num_threads():
    """How many threads an operator on the CPU uses."""
    return _C._get_num_threads()


def set_num_threads(num):
    if not isinstance(num, int) or isinstance(num, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    _C._set_num_threads(num)


_interop = None


def get_num_interop_threads():
    """How many operators PyTorch would run beside each other; Tessera runs them in order."""
    import os

    return (os.cpu_count() or 1) if _interop is None else _interop


def set_num_interop_threads(num):
    global _interop
    if not isinstance(num, int) or isinstance(num, bool):
        raise TypeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _interop = num


# ---- determinism -----------------------------------------------------------------------------

# On the CPU operators give the same bits each time. On CUDA convolutions by cuDNN do when this is
# set, and those that write several values to one place (index_add, scatter, index_put, ...): values
# of a place are combined in the order of the indices, of those assigned the last one stays. The
# gradient of grid_sample adds in any order there either way.
_deterministic, _warn_only = False, False


def use_deterministic_algorithms(mode, *, warn_only=False):
    global _deterministic, _warn_only
    _deterministic, _warn_only = bool(mode), bool(mode) and bool(warn_only)
    _C._set_conv_flag(1024, _deterministic)
    _C._set_deterministic(_deterministic)


def are_deterministic_algorithms_enabled():
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled():
    return _warn_only


def set_deterministic_debug_mode(debug_mode):
    """0 or "default", 1 or "warn", 2 or "error"."""
    names = {"default": 0, "warn": 1, "error": 2}
    if isinstance(debug_mode, str):
        if debug_mode not in names:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                + debug_mode
            )
        debug_mode = names[debug_mode]
    elif not isinstance(debug_mode, int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode():
    return 0 if not _deterministic else 1 if _warn_only else 2


# ---- precision -------------------------------------------------------------------------------

_precision = "highest"


def get_float32_matmul_precision():
    return _precision


def set_float32_matmul_precision(precision):
    """How much precision products of float32 matrices may lose on a GPU, and on the CPU none.

    "high" and "medium" allow TensorFloat-32: products of numbers with 10 bits, added in float32.
    """
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(
            f"{precision} is not one of 'highest', 'high', or 'medium'; float32 matmul precision "
            "was not changed"
        )
    _precision = precision
    _C._set_matmul_tf32(precision != "highest")


def set_flush_denormal(mode):
    """Whether the processor may treat the smallest numbers as zero; it never does: False."""
    return False


# ---- warnings --------------------------------------------------------------------------------

_warn_always = False


def set_warn_always(b):
    global _warn_always
    _warn_always = bool(b)


def is_warn_always_enabled():
    return _warn_always


# ---- the build -------------------------------------------------------------------------------


def compiled_with_cxx11_abi():
    return True


def get_device_module(device=None):
    """The module of a device's kind: torch.cuda, torch.cpu."""
    import importlib

    if device is None:
        from .accelerator import current_accelerator

        device = current_accelerator() or "cpu"
    kind = _C.device(device).type
    try:
        return importlib.import_module(f"tessera.{kind}")
    except ImportError:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        ) from None


def get_file_path(*path_components):
    """A path within the package."""
    import os

    return os.path.join(os.path.dirname(__file__), *path_components)
