"""torch.UntypedStorage and TypedStorage: the memory that tensors share."""

from weakref import WeakValueDictionary

from . import _C
from ._legacy import TITLES
from ._missing import module_getattr

Tensor = _C.Tensor
_uint8 = _C.dtypes["uint8"]
# One object per storage while somebody has it: what pickles and deep copies recognise it by.
_known = WeakValueDictionary()


def _numbers(storage):
    """The lines of a storage's repr."""
    values = storage.tolist()
    if len(values) > 1000:
        values = [*values[:500], "...", *values[-500:]]
    return "".join(f" {v}\n" for v in values)


class UntypedStorage:
    """Memory, as bytes. Tensors over the same memory have the same one."""

    def __new__(cls, *args, device=None):
        if len(args) > 1:
            raise TypeError(f"UntypedStorage() takes one size or sequence, not {len(args)}")
        what = args[0] if args else 0
        if isinstance(what, int):
            if what < 0:
                raise RuntimeError(f"UntypedStorage() needs a size of at least 0, not {what}")
            made = _C.ops["empty"]((what,), dtype=_uint8, device=device)
        else:
            made = _C.tensor(list(what), dtype=_uint8, device=device)
        return storage_of(made)

    @property
    def _bytes(self):
        # Made anew: a storage grows in place.
        return _C._storage_bytes(self._holder)

    def nbytes(self):
        return self._bytes.numel()

    size = __len__ = nbytes

    def element_size(self):
        return 1

    def data_ptr(self):
        return self._bytes.data_ptr()

    @property
    def device(self):
        return self._bytes.device

    @property
    def is_cuda(self):
        return self._bytes.is_cuda

    @property
    def _cdata(self):
        return _C._storage_key(self._bytes)

    def get_device(self):
        return self._bytes.get_device()

    def __getitem__(self, index):
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError(
                    f"Trying to slice with a step of {index.step}, but only a step of 1 is "
                    "supported"
                )
            return storage_of(self._bytes[index].clone())
        return self._bytes[index].item()

    def __setitem__(self, index, value):
        self._bytes[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._bytes.tolist()

    def fill_(self, value):
        self._bytes.fill_(value)
        return self

    def copy_(self, source, non_blocking=False):
        self._bytes.copy_(source._bytes, non_blocking)
        return self

    def clone(self):
        return storage_of(self._bytes.clone())

    def to(self, *, device, non_blocking=False):
        whole = self._bytes
        moved = whole.to(device, non_blocking=non_blocking)
        return self if moved is whole else storage_of(moved)

    def cpu(self):
        return self.to(device="cpu")

    def cuda(self, device=None, non_blocking=False):
        return self.to(device="cuda" if device is None else device, non_blocking=non_blocking)

    def is_shared(self):
        return self.is_cuda  # as PyTorch answers

    def is_pinned(self, device="cuda"):
        return self._bytes.is_pinned(device)

    def pin_memory(self, device="cuda"):
        whole = self._bytes
        pinned = whole.pin_memory(device)
        return self if pinned is whole else storage_of(pinned)

    def resizable(self):
        """Returns False for foreign memory, and while a NumPy array or another buffer sees it."""
        return _C._storage_resizable(self._holder)

    def resize_(self, size):
        if size != self.nbytes():
            if not self.resizable():
                raise RuntimeError("Trying to resize storage that is not resizable")
            raise NotImplementedError("UntypedStorage.resize_ is not implemented in Tessera yet")
        return self

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        # Under the name PyTorch uses, so that tensors of one deep copy go on sharing memory.
        copies = memo.setdefault("torch", {})
        if self._cdata not in copies:
            copies[self._cdata] = self, self.clone()  # kept, so that the key stays its own
        return copies[self._cdata][1]

    def __reduce__(self):
        where = None if self.device.type == "cpu" else str(self.device)
        return _load_storage, (_C._to_bytes(self._bytes.cpu()), where)

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def __repr__(self):
        return (
            _numbers(self)
            + f"[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"
        )


def storage_of(tensor):
    """The storage of a tensor."""
    key = _C._storage_key(tensor)
    found = _known.get(key)
    if found is None:
        found = object.__new__(UntypedStorage)
        found._holder = _C._storage_bytes(tensor)  # keeps the storage, whatever `tensor` becomes
        _known[key] = found
    return found


def _load_storage(data, device):
    made = _C._from_bytes(data)
    return storage_of(made if device is None else made.to(device))


class TypedStorage:
    """A storage seen as numbers of one dtype; PyTorch's older form."""

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        self.dtype = _C.get_default_dtype() if dtype is None else dtype
        if wrap_storage is None:
            empty = _C.ops["empty"]
            if args and not isinstance(args[0], int):
                made = _C.tensor(list(args[0]), dtype=self.dtype, device=device)
            else:
                made = empty((args[0] if args else 0,), dtype=self.dtype, device=device)
            wrap_storage = storage_of(made)
        self._untyped_storage = wrap_storage

    def untyped(self):
        return self._untyped_storage

    def _numbers(self):
        size = len(self)
        return _C._over_storage(self._untyped_storage._bytes, self.dtype, 0, (size,), (1,))

    def __len__(self):
        return self.nbytes() // self.element_size()

    size = __len__

    def nbytes(self):
        return self._untyped_storage.nbytes()

    def element_size(self):
        return self.dtype.itemsize

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        return self._untyped_storage.is_cuda

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def get_device(self):
        return self._untyped_storage.get_device()

    def __getitem__(self, index):
        found = self._numbers()[index]
        return found.item() if found.dim() == 0 else found.tolist()

    def __setitem__(self, index, value):
        self._numbers()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._numbers().tolist()

    def fill_(self, value):
        self._numbers().fill_(value)
        return self

    def copy_(self, source, non_blocking=False):
        self._numbers().copy_(source._numbers(), non_blocking)
        return self

    def _with(self, untyped):
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype)

    def clone(self):
        return self._with(self._untyped_storage.clone())

    def cpu(self):
        return self._with(self._untyped_storage.cpu())

    def cuda(self, device=None, non_blocking=False):
        return self._with(self._untyped_storage.cuda(device, non_blocking))

    def is_shared(self):
        return self._untyped_storage.is_shared()

    def is_pinned(self, device="cuda"):
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device="cuda"):
        return self._with(self._untyped_storage.pin_memory(device))

    def resize_(self, size):
        self._untyped_storage.resize_(size * self.element_size())
        return self

    def __eq__(self, other):
        if not isinstance(other, TypedStorage):
            return NotImplemented
        return self.data_ptr() == other.data_ptr()

    __hash__ = object.__hash__

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        return self._with(self._untyped_storage.__deepcopy__(memo))

    def __reduce__(self):
        return _typed, (self._untyped_storage, self.dtype)

    def __repr__(self):
        return (
            _numbers(self) + f"[torch.storage.TypedStorage(dtype={self.dtype}, "
            f"device={self.device}) of size {len(self)}]"
        )


def _typed(untyped, dtype):
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


class _LegacyType(type):
    """The type of FloatStorage and its kin: storages of their dtype are their instances."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, TypedStorage) and instance.dtype == cls.dtype

    def __call__(cls, *args, device=None):
        return TypedStorage(*args, dtype=cls.dtype, device=device)


def _legacy(dtype_name, title):
    members = {"dtype": _C.dtypes[dtype_name], "__module__": "tessera"}
    return _LegacyType(f"{title}Storage", (), members)


_LEGACY = {_C.dtypes[d]: _legacy(d, t) for d, t in TITLES.items() if d in _C.dtypes}
globals().update({c.__name__: c for c in _LEGACY.values()})


def legacy_class(dtype):
    """torch.FloatStorage for torch.float32: what files call a storage of numbers."""
    return _LEGACY[dtype]


__getattr__ = module_getattr(__name__)
