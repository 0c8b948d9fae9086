"""Versions: of PyTorch's API that Tessera follows, and of Tessera itself."""

tessera = "0.1.0"
# Programs ask this to know what they may use.
__version__ = f"2.11.0+tessera.{tessera}"
debug = False
git_version = "Unknown"
hip = rocm = xpu = None


def __getattr__(name):
    if name != "cuda":
        raise AttributeError(f"module 'torch.version' has no attribute '{name}'", name=name)
    return _cuda_version()


def _cuda_version():
    """CUDA's, as text, where a real device is used; else None, as PyTorch without CUDA answers."""
    from . import _C

    if _C._cuda_device_count() == 0 or _C._cuda_properties(0)["is_virtual"]:
        return None
    import ctypes

    version = ctypes.c_int()
    try:
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except OSError:
        return None
    return f"{version.value // 1000}.{version.value % 1000 // 10}"
