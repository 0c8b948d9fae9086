"""torch.save and torch.load: PyTorch's files, both ways.

Reading with `weights_only` (the default) builds data and calls nothing that the file names; the
reader is in the core. `weights_only=False` is Python's pickle, which runs what the file says.
"""

import _compat_pickle
import copyreg
import io
import os
import pickle
import types
from contextlib import contextmanager
from enum import Enum

from . import _C
from ._layout import layout
from .storage import TypedStorage, UntypedStorage, legacy_class, storage_of

DEFAULT_PROTOCOL = 2
_safe = []
# Classes that PyTorch has in another file than we have: a module, or a class, and PyTorch's module.
_MOVED = {
    "tessera.nn.modules.attention": "torch.nn.modules.activation",
    "tessera.nn.modules.lazy_conv": "torch.nn.modules.conv",
    "tessera.nn.modules.param_container": "torch.nn.modules.container",
    "tessera.nn.modules.rnn_cells": "torch.nn.modules.rnn",
    "tessera.optim.adam.AdamW": "torch.optim.adamw",
    "tessera.optim.lr_scheduler.combined": "torch.optim.lr_scheduler",
    "tessera.optim.lr_scheduler.cycles": "torch.optim.lr_scheduler",
    "tessera.optim.lr_scheduler.plateau": "torch.optim.lr_scheduler",
    "tessera.optim.lr_scheduler.simple": "torch.optim.lr_scheduler",
}


class LoadEndianness(Enum):
    """The order of bytes that a file is taken to have where it says nothing."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class SourceChangeWarning(Warning):
    """A class's code is not what it was when a file was written."""


_endianness = None


def get_default_load_endianness():
    return _endianness


def set_default_load_endianness(endianness):
    global _endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _endianness = endianness


# ---- what a file may name --------------------------------------------------------------------


def add_safe_globals(safe_globals):
    """Classes and functions that a file may name though it is loaded with weights_only.

    A pair of one and its full name, "module.name", allows it under that name.
    """
    for item in safe_globals:
        if item not in _safe:
            _safe.append(item)


def get_safe_globals():
    return list(_safe)


def clear_safe_globals():
    _safe.clear()


@contextmanager
def safe_globals(safe_globals):
    """add_safe_globals() for a while."""
    before = list(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe[:] = before


def _allowed():
    """What is allowed, by the names that files use: PyTorch's for classes of ours."""
    names = {}
    for item in _safe:
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(
                    "Expected tuple of length 2 (global, str of callable full path), but got "
                    f"tuple of length: {len(item)}"
                )
            item, name = item
            if type(name) is not str:
                raise TypeError(
                    "Expected second item in tuple to be str of callable full path, but got: "
                    f"{type(name)}"
                )
        else:
            name = f"{item.__module__}.{item.__qualname__}"
        names[name] = item
        module, dot, rest = name.rpartition(".")
        names[_torch_module(module, rest) + dot + rest] = item
        # Protocol 2 writes Python 2's names.
        renamed = _compat_pickle.REVERSE_NAME_MAPPING.get((module, rest))
        if renamed is None:
            renamed = _compat_pickle.REVERSE_IMPORT_MAPPING.get(module, module), rest
        names[".".join(renamed)] = item
    return names


def _torch_module(module, name):
    """Where PyTorch has a class of ours; other modules as they are."""
    moved = _MOVED.get(f"{module}.{name}") or _MOVED.get(module)
    if moved is None and (module == "tessera" or module.startswith("tessera.")):
        moved = "torch" + module.removeprefix("tessera")
    return moved or module


def get_unsafe_globals_in_checkpoint(f):
    """What a file names that load() would refuse, as "module.name"."""
    source, name = _source(f)
    return _C._unknown_globals(source, name, _allowed())


def _is_path(f):
    """A file's name: text, the system's own bytes, or a path."""
    return isinstance(f, (str, bytes, os.PathLike))


# ---- saving ----------------------------------------------------------------------------------


def _get_layout(name):
    """The layout of a name, "torch.strided": what files call it by."""
    from . import _layout

    return getattr(_layout, name.removeprefix("torch."))


def location_tag(storage):
    """Where a storage is, as files say it."""
    return "cpu" if storage.device.type == "cpu" else str(storage.device)


class _Storages:
    """The storages that a pickle names, in the order in which they are found."""

    def __init__(self):
        self.memory = []  # tensors over them, which keep them alive
        self._found = {}  # by address: key and dtype

    def persistent_id(self, obj):
        if isinstance(obj, UntypedStorage):
            untyped, dtype, kind = obj, None, UntypedStorage
        else:
            untyped, dtype, kind = obj._untyped_storage, obj.dtype, legacy_class(obj.dtype)
        if untyped.device.type == "meta":
            raise NotImplementedError("Cannot save a storage on the meta device: it has no data")
        known = self._found.get(untyped._cdata)
        if known is None:
            known = self._found[untyped._cdata] = str(len(self.memory)), dtype
            memory = untyped._bytes
            size = untyped.nbytes() // (dtype.itemsize if dtype else 1)
            if dtype is not None:
                memory = _C._over_storage(memory, dtype, 0, (size,), (1,))
            self.memory.append(memory)
        elif known[1] != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                "types"
            )
        numel = untyped.nbytes() // (dtype.itemsize if dtype else 1)
        return "storage", kind, known[0], location_tag(untyped), numel


def _reduce_layout(value):
    return _get_layout, (repr(value),)


def _pickler(base, storages):
    class Pickler(base):
        dispatch_table = {**copyreg.dispatch_table, layout: _reduce_layout}

        def persistent_id(self, obj):  # asked for every object: most are neither
            kind = type(obj)
            if kind is TypedStorage or kind is UntypedStorage:
                return storages.persistent_id(obj)
            return None

    return Pickler


class _RenamingPickler(pickle._Pickler):
    """Of protocol 4 and up: classes of ours under PyTorch's names. Older ones the core renames."""

    def save_global(self, obj, name=None):
        qualified = name or getattr(obj, "__qualname__", None) or obj.__name__
        module = pickle.whichmodule(obj, qualified)
        if module != "tessera" and not module.startswith("tessera."):
            return super().save_global(obj, name)
        self.save(_torch_module(module, qualified))
        self.save(qualified)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)


_RenamingPickler.dispatch = {
    **pickle._Pickler.dispatch,
    types.FunctionType: _RenamingPickler.save_global,
}


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol=DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization=True,
    _disable_byteorder_record=False,
):
    """Writes an object to a file: a name, a path or something with write().

    A named file is written beside the old one and takes its place when it is complete: a program
    that is killed leaves the old file or the new one, whole. Files are zip archives, whatever
    `_use_new_zipfile_serialization` says; PyTorch reads them since 1.6.
    """
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, "
            f"not {type(f).__name__}"
        )
    storages = _Storages()
    data = io.BytesIO()
    by_core = pickle_protocol in (0, 1, 2, 3)
    base = pickle_module.Pickler
    if not by_core and pickle_module is pickle:
        base = _RenamingPickler
    try:
        _pickler(base, storages)(data, protocol=pickle_protocol).dump(obj)
        target = os.fsdecode(f) if _is_path(f) else f
        _C._save(target, data.getvalue(), storages.memory, _MOVED if by_core else None)
    finally:
        storages.memory.clear()  # the class above is a cycle, which keeps them for a while


# ---- loading ---------------------------------------------------------------------------------


def _source(f):
    """What the core reads from, and the name for its messages."""
    if _is_path(f):
        return os.fsdecode(f), os.fsdecode(f)
    if not hasattr(f, "read"):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'read' attribute, "
            f"not {type(f).__name__}. You can only torch.load from a file that is seekable. "
            "Please pre-load the data into a buffer like io.BytesIO and try to load from it "
            "instead."
        )
    name = getattr(f, "name", None)
    name = name if isinstance(name, str) else f"<{type(f).__name__}>"
    # A plain file from its beginning: the core reads it without a copy in between.
    if type(f) in (io.BufferedReader, io.BufferedRandom, io.FileIO) and f.tell() == 0:
        return f.fileno(), name
    return f.read(), name


def default_restore_location(storage, location):
    """A storage on the device that its file names."""
    return storage_of(_C._place_as_saved(storage._bytes, location))


def _placer(map_location):
    """map_location as a function of bytes and where they were; None: where they were."""
    if map_location is None:
        return None
    if isinstance(map_location, dict):
        return lambda memory, location: _C._place_as_saved(
            memory, str(map_location.get(location, location))
        )
    if isinstance(map_location, (str, _C.device)):
        device = _C.device(map_location)
        return lambda memory, location: memory.to(device)

    def place(memory, location):
        result = map_location(storage_of(memory), location)
        if result is None:
            return None
        return (result.untyped() if isinstance(result, TypedStorage) else result)._bytes

    return place


def _wants_weights_only(given):
    def is_set(name):
        return os.environ.get(name, "").lower() in ("1", "y", "yes", "true")

    if is_set("TORCH_FORCE_WEIGHTS_ONLY_LOAD"):
        return True
    if given is None:
        return not is_set("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    return bool(given)


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **options):
    """Reads what save() or PyTorch wrote: a name, a path or something with read().

    `weights_only` (the default) reads tensors and plain data and calls nothing that the file
    names, beside what add_safe_globals() allows. With weights_only=False the file is a program
    that runs: only for files of people you trust.
    """
    mmap = bool(mmap)
    if mmap and not _is_path(f):
        raise ValueError(
            "f must be a file path in order to use the mmap argument, not " + type(f).__name__
        )
    source, name = _source(f)
    big = _endianness is LoadEndianness.BIG
    if _wants_weights_only(weights_only):
        if pickle_module is not None:
            raise RuntimeError(
                "Can not safely load weights when explicit pickle_module is specified"
            )
        from . import _saved

        return _C._load(source, name, _placer(map_location), _allowed(), _saved, mmap, big)
    if isinstance(source, int):
        source = f.read()
    return _load_program(
        source, name, _placer(map_location), pickle_module or pickle, mmap, big, options
    )


def _find_class(module, name):
    """Classes of PyTorch's names are ours."""
    if module == "torch" or module.startswith("torch."):
        module = "tessera" + module.removeprefix("torch")
    return module, name


def _load_program(source, name, place, pickle_module, mmap, big, options):
    head = source[:2] if not isinstance(source, str) else _first_bytes(source)
    if not head:
        raise EOFError("Ran out of input")
    if head != b"PK":
        return _load_legacy(source, place, pickle_module, options)
    archive = _C._open_archive(source, name, mmap, big)
    found = {}

    def persistent_load(saved):
        kind, cls, key, location, numel = saved
        if kind != "storage":
            raise RuntimeError(f"Unknown typename for persistent_load, expected 'storage': {kind}")
        if key not in found:
            dtype = getattr(cls, "dtype", None)
            memory = _C._archive_storage(archive, key, dtype, numel)
            found[key] = _typed_storage(memory, location, dtype, place)
        return found[key]

    data = io.BytesIO(_C._archive_pickle(archive))
    return _unpickler(pickle_module, persistent_load)(data, **options).load()


def _first_bytes(path):
    with open(path, "rb") as file:
        return file.read(2)


def _typed_storage(memory, location, dtype, place):
    placed = place(memory, location) if place else None
    if placed is None:
        placed = _C._place_as_saved(memory, location)
    untyped = storage_of(placed)
    return untyped if dtype is None else TypedStorage(wrap_storage=untyped, dtype=dtype)


def _unpickler(pickle_module, persistent):
    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            return super().find_class(*_find_class(module, name))

        def persistent_load(self, saved):
            return persistent(saved)

    return Unpickler


def _load_legacy(source, place, pickle_module, options):
    """PyTorch's form before 1.6: pickles one after another, then the storages."""
    if isinstance(source, str):
        with open(source, "rb") as file:
            source = file.read()
    data = io.BytesIO(source)
    wanted = {}

    def persistent_load(saved):
        kind, cls, key, location, numel, *view = saved
        if kind != "storage" or any(view):
            raise RuntimeError(f"Unknown saved id type: {kind}")
        if key not in wanted:
            dtype = getattr(cls, "dtype", None)
            memory = _C.ops["empty"]((numel * (dtype.itemsize if dtype else 1),), dtype=_UINT8)
            wanted[key] = memory, _typed_storage(memory, location, dtype, place), numel
        return wanted[key][1]

    unpickler = _unpickler(pickle_module, persistent_load)
    magic, version, machine = (unpickler(data, **options).load() for _ in range(3))
    if magic != 0x1950A86A20F9469CFC6C or version != 1001:
        raise RuntimeError("Invalid magic number; corrupt file?")
    if not machine.get("little_endian", True):
        raise RuntimeError("a file of a big-endian machine: load it with weights_only=True")
    result = unpickler(data, **options).load()
    for key in unpickler(data, **options).load():
        memory, storage, numel = wanted[key]
        size = int.from_bytes(data.read(8), "little", signed=True)
        content = data.read(memory.numel())
        if size != numel or len(content) != memory.numel():
            raise RuntimeError(f"storage {key} is cut short: the file is damaged")
        (storage.untyped() if isinstance(storage, TypedStorage) else storage)._bytes.copy_(
            _C._from_bytes(content)
        )
    return result


_UINT8 = _C.dtypes["uint8"]
