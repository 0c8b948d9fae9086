"""How the library was built."""

from . import _C, version


def show():
    """A text for reports of errors."""
    return f"Tessera {version.tessera}, API of PyTorch {version.__version__}\n" + _C._about_backend(
        "cpu"
    )


def parallel_info():
    from ._flags import get_num_threads

    return f"threads of an operator on the CPU: {get_num_threads()}\n"
