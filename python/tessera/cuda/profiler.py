"""torch.cuda.profiler: when NVIDIA's own profilers look."""

from contextlib import contextmanager

from .._missing import module_getattr


def init(output_file, flags=None, output_mode="key_value"):
    raise RuntimeError("CUDA profilers are set up by their own command line")


def _call(name):
    import ctypes

    from . import is_available, is_virtual

    if not is_available() or is_virtual():
        return
    result = getattr(ctypes.CDLL("libcuda.so.1"), name)()
    if result:
        raise RuntimeError(f"{name} failed with error {result}")


def start():
    """NVIDIA's profilers start collecting, where one runs the program."""
    _call("cuProfilerStart")


def stop():
    _call("cuProfilerStop")


@contextmanager
def profile():
    start()
    try:
        yield
    finally:
        stop()


__getattr__ = module_getattr(__name__)
