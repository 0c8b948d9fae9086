"""Messages from a worker to its parent. Large tensors go as memory that both map, not as bytes.

A message is a pickle; a large tensor in it is a number, and its memory a file descriptor that
follows the bytes through the same socket. The memory has no name: whoever dies, nothing is left.
Tensors that share memory share it on the other side too.
"""

import functools
import io
import mmap
import os
import pickle
import socket
import struct
from multiprocessing.reduction import ForkingPickler

import tessera as torch

from .... import _C

# Below it a copy through the socket is as fast as mapping.
_LARGE = 64 * 1024
# The kernel passes at most 253 descriptors at once.
_MOST = 250
# How many descriptors follow, and where the places of the large tensors stand.
_HEADER = struct.Struct("<HQ")


class _Pickler(ForkingPickler):
    """Puts large tensors aside."""

    def __init__(self, file):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.tensors = []
        self._numbers = {}  # by id: the same tensor arrives as one

    def persistent_id(self, obj):
        if type(obj) is not torch.Tensor or not obj.is_cpu or obj.requires_grad:
            return None
        if id(obj) in self._numbers:
            return self._numbers[id(obj)]
        if len(self.tensors) >= _MOST or obj.nbytes < _LARGE:
            return None
        self._numbers[id(obj)] = len(self.tensors)
        self.tensors.append(obj)
        return self._numbers[id(obj)]


def _extent(tensor):
    """The bytes of its storage that a tensor reaches: first, and one past the last."""
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    first = tensor.storage_offset()
    return first * tensor.itemsize, (first + last + 1) * tensor.itemsize


def _stretches(tensors):
    """Stretches of memory, and for each tensor the number of its stretch and its geometry there.

    Tensors that lie in the same bytes lie in the same bytes again; one with gaps goes without them.
    """
    placed = sorted(
        (tensor.untyped_storage().data_ptr(), *_extent(tensor), number)
        for number, tensor in enumerate(tensors)
    )
    groups = []
    for storage, first, last, number in placed:
        if groups and groups[-1][0] == storage and first < groups[-1][2]:
            groups[-1][2] = max(groups[-1][2], last)
            groups[-1][3].append(number)
        else:
            groups.append([storage, first, last, [number]])
    views, places = [], [None] * len(tensors)
    for at, (_, first, last, members) in enumerate(groups):
        tensor = tensors[members[0]]
        if len(members) == 1 and last - first > tensor.nbytes:
            tensor = tensor.contiguous()
            first, last = _extent(tensor)
            tensors[members[0]] = tensor
        first -= first % 16  # so that elements of every size begin at a multiple of it
        view = _C._over_storage(tensor, torch.uint8, first, (last - first,), (1,))
        views.append(memoryview(view))
        for number in members:
            t = tensors[number]
            offset = t.storage_offset() - first // t.itemsize
            places[number] = at, t.dtype, offset, tuple(t.shape), t.stride()
    return views, places


def _written(view):
    fd = os.memfd_create("tessera")
    try:
        at = 0
        while at < len(view):
            at += os.write(fd, view[at:])
    except BaseException:
        os.close(fd)
        raise
    return fd


@functools.cache
def _libc():
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    )
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return libc


def _mapped(fd, size):
    """The memory behind a descriptor as a buffer, which is unmapped with its last reader.

    Python's own mmap keeps the descriptor open as long: a program that keeps its batches would run
    out of them.
    """
    import ctypes
    import weakref

    libc = _libc()
    # Read in at once: a fault for each page would cost more than the copy did.
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        code = ctypes.get_errno()
        raise OSError(code, f"mapping a batch of {size} bytes: {os.strerror(code)}")
    buffer = (ctypes.c_ubyte * size).from_address(address)
    # Not at exit: somebody may read it to the last.
    weakref.finalize(buffer, libc.munmap, address, size).atexit = False
    return buffer


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, descriptors, places):
        super().__init__(file)
        self._stretches = [
            torch.frombuffer(_mapped(fd, os.fstat(fd).st_size), dtype=torch.uint8)
            for fd in descriptors
        ]
        self._tensors = [
            _C._over_storage(self._stretches[at], dtype, offset, size, stride)
            for at, dtype, offset, size, stride in places
        ]

    def persistent_load(self, number):
        return self._tensors[number]


class Message:
    """A pickled message, the places of its large tensors, and the descriptors it needs."""

    def __init__(self, value):
        file = io.BytesIO()
        self.descriptors = []
        file.write(_HEADER.pack(0, 0))
        pickler = _Pickler(file) if hasattr(os, "memfd_create") else ForkingPickler(file)
        pickler.dump(value)
        end = file.tell()
        views, places = _stretches(getattr(pickler, "tensors", []))
        pickle.dump(places, file, pickle.HIGHEST_PROTOCOL)
        try:
            for view in views:
                self.descriptors.append(_written(view))
        except BaseException:
            self.close()
            raise
        _HEADER.pack_into(file.getbuffer(), 0, len(self.descriptors), end)
        self.data = file.getbuffer()

    def send(self, pipe):
        try:
            pipe.send_bytes(self.data)
            if self.descriptors:
                with socket.fromfd(pipe.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                    socket.send_fds(sock, [b"."], self.descriptors)
        finally:
            self.close()

    def close(self):
        for fd in self.descriptors:
            os.close(fd)
        self.descriptors = []


def receive(pipe):
    """The next message of a worker; raises EOFError where it has ended."""
    data = memoryview(pipe.recv_bytes())
    count, end = _HEADER.unpack_from(data)
    descriptors = []
    if count:
        with socket.fromfd(pipe.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            byte, descriptors, _, _ = socket.recv_fds(sock, 1, count)
        if not byte or len(descriptors) != count:
            raise EOFError
    try:
        places = pickle.loads(data[end:])
        return _Unpickler(io.BytesIO(data[_HEADER.size : end]), descriptors, places).load()
    finally:
        for fd in descriptors:
            os.close(fd)
