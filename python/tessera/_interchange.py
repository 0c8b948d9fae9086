"""Tensors and other libraries' arrays over the same memory: DLPack, arrays, anything.

NumPy is imported only where a program uses it.
"""

from . import _C

Tensor = _C.Tensor


def _dlpack_device(self):
    from .utils.dlpack import DLDeviceType

    kind, number = _C._dlpack_device(self)
    return DLDeviceType(kind), number


def _dlpack(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
    """A capsule over the tensor's memory, for another library's from_dlpack()."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    given = self
    if dl_device is not None and tuple(dl_device) != _C._dlpack_device(self):
        if copy is False:
            raise ValueError("cannot move (i.e. copy=False) tensor across devices")
        self = self.to(_device_of(*dl_device))
    if copy and self is given:
        self = self.clone()
    if self.is_cuda:
        # The reader's stream need not wait for ours: it is done.
        from .cuda import current_stream

        current_stream(self.device).synchronize()
    versioned = max_version is not None and max_version[0] >= 1
    return _C._to_dlpack(self.detach(), versioned, self is not given)


def _device_of(kind, number):
    from .utils.dlpack import DLDeviceType

    if kind in (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDAHost):
        return _C.device("cpu")
    if kind in (DLDeviceType.kDLCUDA, DLDeviceType.kDLExtDev):
        return _C.device("cuda", number)
    raise BufferError(f"Tessera has no device for DLPack's type {int(kind)}")


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of another library's array, or of a capsule."""
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise TypeError("from_dlpack(): a capsule takes neither device nor copy")
        return _C._from_dlpack(ext_tensor)
    from .utils.dlpack import DLDeviceType

    options = {"max_version": (1, 1)}
    if copy is not None:
        options["copy"] = copy
    if device is not None:
        place = _C.ops["empty"]((0,), device=device)
        options["dl_device"] = _C._dlpack_device(place)
    kind, number = ext_tensor.__dlpack_device__()
    if kind == DLDeviceType.kDLCUDA:
        from .cuda import current_stream

        # PyTorch's rule: the default stream is number 1.
        options["stream"] = current_stream(number).cuda_stream or 1
    try:
        capsule = ext_tensor.__dlpack__(**options)
    except TypeError:  # from before DLPack had versions
        options.pop("max_version")
        capsule = ext_tensor.__dlpack__(**options)
    return _C._from_dlpack(capsule)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor of anything that holds numbers, over the same memory unless that cannot be."""
    made, shares = _of(obj, dtype)
    if not shares and copy is False:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    if device is not None and _C.device(device).type != made.device.type and copy is False:
        raise ValueError(
            f"can't alias tensor from device '{made.device}' to '{_C.device(device)}'."
        )
    if dtype is not None and made.dtype != dtype and copy is False:
        raise ValueError(f"can't alias tensor with dtype '{made.dtype}' into dtype '{dtype}'.")
    moved = made.to(device=device, dtype=dtype)
    if copy and shares and moved is made:
        moved = made.clone()
    if requires_grad:
        return moved if moved.requires_grad else moved.detach().requires_grad_()
    return moved.detach() if moved.requires_grad else moved


def _of(obj, dtype):
    """A tensor, and whether it shares the object's memory."""
    if isinstance(obj, Tensor):
        return obj, True
    import sys

    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(obj, numpy.generic):
        return _C.tensor(obj), False
    if numpy is not None and isinstance(obj, numpy.ndarray):
        return _C._from_buffer(obj), True
    if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj), True
    try:
        memoryview(obj)
    except TypeError:
        return _C.tensor(obj, dtype=dtype), False
    return _C.frombuffer(obj, dtype=_C.get_default_dtype() if dtype is None else dtype), True


def _array_wrap(self, array, context=None, return_scalar=False):
    """What NumPy makes of a tensor becomes one again."""
    from ._numpy import from_numpy

    if array.dtype == bool:
        array = array.astype("uint8")  # as PyTorch does
    return from_numpy(array)


def _cuda_array_interface(self):
    if not self.is_cuda:
        raise AttributeError(
            "Can't get __cuda_array_interface__ on non-CUDA tensor type: "
            f"{self.type()} If CUDA data is required use tensor.cuda() to copy tensor to device "
            "memory."
        )
    if self.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients "
            "aren't required, use var.detach() to get Variable that doesn't require grad."
        )
    if _C._cuda_properties(self.get_device())["is_virtual"]:
        raise AttributeError("a virtual GPU's memory has no __cuda_array_interface__")
    if self.dtype == _C.dtypes["bfloat16"]:
        raise TypeError("bfloat16 has no __cuda_array_interface__")
    size = self.element_size()
    kind = "b" if self.dtype == _C.dtypes["bool"] else "c" if self.is_complex() else "f"
    if not (self.is_floating_point() or kind in "bc"):
        kind = "i" if self.is_signed() else "u"
    steps = None if self.is_contiguous() else tuple(s * size for s in self.stride())
    return {
        "typestr": ("|" if size == 1 else "<") + f"{kind}{size}",
        "shape": tuple(self.shape),
        "strides": steps,
        "data": (self.data_ptr() if self.numel() else 0, False),
        "version": 2,
    }


def _bytes(self):
    """As PyTorch, whose tensors offer no memory: the numbers, each a byte."""
    if self.numel() == 1 and not self.is_floating_point() and not self.is_complex():
        return bytes(int(self))
    return bytes(iter(self.tolist()))


Tensor.__dlpack__ = _dlpack
Tensor.__dlpack_device__ = _dlpack_device
Tensor.__array_wrap__ = _array_wrap
Tensor.__cuda_array_interface__ = property(_cuda_array_interface)
Tensor.__bytes__ = _bytes
