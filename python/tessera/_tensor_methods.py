"""Methods of Tensor that are no operators: what a tensor says of itself, and older forms."""

import functools

from . import _C
from ._layout import strided

Tensor = _C.Tensor
METHODS = {}


def overridable(method):
    """A method of Tensor that a subclass's __torch_function__ may handle, as all operators."""
    name = method.__name__.removesuffix("_of_tensor")  # where the bare name is Python's own

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if type(self) is not Tensor and _C._has_torch_function(self):
            from .overrides import handle_torch_function

            return handle_torch_function(getattr(Tensor, name), (self,), self, *args, **kwargs)
        return method(self, *args, **kwargs)

    call.__name__, call.__qualname__ = name, f"Tensor.{name}"
    METHODS[name] = call
    return call


@overridable
def type_of_tensor(self, dtype=None, non_blocking=False, **kwargs):
    if dtype is None:
        from ._legacy import type_name

        return type_name(self)
    if isinstance(dtype, _C.dtype) or dtype in (float, int, bool, complex):
        return self.to(dtype, non_blocking=non_blocking)
    from ._legacy import type_of

    kind = type_of(dtype)
    place = self.device if self.is_cuda == kind.is_cuda else "cuda" if kind.is_cuda else "cpu"
    return self.to(place, kind.dtype, non_blocking=non_blocking)


@overridable
def view_as(self, other):
    return self.view(other.shape)


@overridable
def reshape_as(self, other):
    return self.reshape(other.shape)


@overridable
def expand_as(self, other):
    return self.expand(other.shape)


@overridable
def type_as(self, other):
    return self.to(other.device, other.dtype)


@overridable
def is_set_to(self, other):
    return (
        self._is_same_storage(other)
        and self.shape == other.shape
        and self.stride() == other.stride()
        and self.storage_offset() == other.storage_offset()
    )


@overridable
def record_stream(self, stream):
    """Its memory is used on `stream` too: not reused before what is queued there is done."""
    _C._record_stream(self, stream)


@overridable
def untyped_storage(self):
    from .storage import storage_of

    return storage_of(self)


@overridable
def _typed_storage(self):
    from .storage import TypedStorage, storage_of

    return TypedStorage(wrap_storage=storage_of(self), dtype=self.dtype)


@overridable
def storage(self):
    """PyTorch's older form of untyped_storage()."""
    return self._typed_storage()


@overridable
def storage_type(self):
    from .storage import TypedStorage

    return TypedStorage


@overridable
def is_shared(self):
    """Is its memory shared with other processes? Of a cuda device it may be."""
    return self.is_cuda


@overridable
def is_inference(self):
    """Was it made in inference mode?"""
    return _C._is_inference(self)


@overridable
def is_nonzero(self):
    """Is its only element not zero?"""
    return bool(self)


@overridable
def is_conj(self):
    """Is it a conjugate that was put off? None is."""
    return False


@overridable
def is_neg(self):
    return False


@overridable
def resolve_conj(self):
    return self


@overridable
def resolve_neg(self):
    return self


@overridable
def is_distributed(self):
    return False


@overridable
def is_same_size(self, other):
    return self.shape == other.shape


@overridable
def has_names(self):
    return False


@overridable
def dim_order(self, ambiguity_check=False):
    """Dimensions from the outermost in memory to the innermost."""
    steps = self.stride()
    return tuple(sorted(range(self.dim()), key=lambda d: -steps[d]))


@overridable
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, **options):
    """A copy of the data, with this tensor's dtype and place unless others are named."""
    if isinstance(data, Tensor):
        data = data.detach()
        made = data.to(
            device=self.device if device is None else device, dtype=dtype or data.dtype, copy=True
        )
        return made.requires_grad_(requires_grad)
    return _C.tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
    )


@overridable
def new(self, *args, **kwargs):
    """PyTorch's first form of new_empty() and new_tensor()."""
    from ._legacy import CUDA, HOST, type_name

    name = type_name(self).rpartition(".")[2]
    return (CUDA if self.is_cuda else HOST)[name](*args, **kwargs)


@overridable
def apply_(self, callable):
    """Replaces each element by what the function makes of it; slow, and on the CPU only."""
    if not self.device.type == "cpu":
        raise TypeError("apply_ is only implemented on CPU tensors")
    if self.requires_grad:
        raise RuntimeError("Can't call apply_() on Variable that requires grad. Use var.detach()")

    def each(values):
        return [each(v) for v in values] if isinstance(values, list) else callable(values)

    made = _C.tensor(each(self.tolist()), dtype=self.dtype)
    self.copy_(made.reshape(self.shape))
    return self


_set_to_tensor = Tensor.set_  # the operator: nothing, a tensor, or a part of its memory


@overridable
def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Makes it a view of other memory: of a tensor, or of a storage with a geometry."""
    if source is None:
        return _set_to_tensor(self)
    if isinstance(source, Tensor):
        if size is None:
            return _set_to_tensor(self, source)
        return _set_to_tensor(self, source, storage_offset, size, stride or ())
    from ._utils import _rebuild_tensor
    from .storage import TypedStorage, UntypedStorage

    if isinstance(source, UntypedStorage):
        source = TypedStorage(wrap_storage=source, dtype=self.dtype)
    size = (len(source) - storage_offset,) if size is None else tuple(size)
    if stride is None:
        stride, step = [], 1
        for n in reversed(size):
            stride.insert(0, step)
            step *= max(n, 1)
    made = _rebuild_tensor(source, storage_offset, size, tuple(stride))
    if made.dtype != self.dtype:
        raise RuntimeError(
            "Could not set tensor of type "
            f"{made.dtype} to a tensor of type {self.dtype}: their dtypes must be the same"
        )
    self.data = made
    return self


@overridable
def __contains__(self, element):
    if isinstance(element, (Tensor, int, float, complex)):
        return bool((element == self).any())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


@overridable
def __reversed__(self):
    return self if self.dim() == 0 else self.flip(0)


def __dir__(self):
    from ._missing import present_in

    return sorted(present_in(type(self)) | set(self.__dict__))


@overridable
def __complex__(self):
    if self.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return complex(self.item())


def _never(name):
    return property(lambda self: False, doc=f"False: Tessera has no such tensors ({name}).")


PROPERTIES = {
    "layout": property(lambda self: strided, doc="How its elements lie in memory."),
    "names": property(lambda self: (None,) * self.dim(), doc="No dimension has a name."),
    **{
        name: _never(name)
        for name in (
            "is_xla is_xpu is_mps is_ipu is_hpu is_mkldnn is_vulkan is_maia is_mtia is_ort "
            "is_nested is_sparse_csr"
        ).split()
    },
}


def install():
    """Gives Tensor what it does not have from elsewhere."""
    from ._missing import _MissingAttribute

    METHODS["__dir__"] = __dir__
    for name, value in (METHODS | PROPERTIES).items():
        present = vars(Tensor).get(name)
        absent = present is None or isinstance(present, _MissingAttribute)
        # set_ takes storages too, which no operator knows.
        if absent or name.startswith("__") or name == "set_":
            setattr(Tensor, name, value)


install()
