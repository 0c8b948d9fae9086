"""Memory shared with NumPy, which is imported only where a program uses it."""

from . import _C


def from_numpy(array):
    """A tensor over an array's memory."""
    import sys

    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(array, numpy.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if not array.flags.writeable:
        import warnings

        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors: writing to this tensor would write to the array's memory all the same. Copy "
            "the array if that is not wanted.",
            UserWarning,
            stacklevel=2,
        )
    return _C._from_buffer(array)


def _numpy(self, *, force=False):
    """An array over the tensor's memory; with force, over that of a copy where it has to be."""
    if force:
        self = self.detach().cpu()
    if self.requires_grad:
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    if self.device.type != "cpu":
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy "
            "the tensor to host memory first."
        )
    if self.dtype == _C.dtypes["bfloat16"]:
        raise TypeError(
            "Got unsupported ScalarType BFloat16: NumPy has none. Use Tensor.float() first."
        )
    import numpy

    return numpy.asarray(memoryview(self))


def _array(self, dtype=None, copy=None):
    made = _numpy(self)
    if dtype is not None and made.dtype != dtype:
        return made.astype(dtype)
    return made.copy() if copy else made


_C.Tensor.numpy = _numpy
_C.Tensor.__array__ = _array
