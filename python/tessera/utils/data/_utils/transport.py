"""Messages from a worker to its parent. Large tensors go as memory that both map, not as bytes.

A message is a pickle; a large tensor in it is a number, and its memory a file descriptor that
follows the bytes through the same socket. The memory has no name: whoever dies, nothing is left.
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

# Below it a copy through the socket is as fast as mapping.
_LARGE = 64 * 1024
# The kernel passes at most 253 descriptors at once.
_MOST = 250
_COUNT = struct.Struct("<H")


class _Pickler(ForkingPickler):
    """Puts large tensors aside, each in a descriptor of its own."""

    def __init__(self, file):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.descriptors = []

    def persistent_id(self, obj):
        if type(obj) is not torch.Tensor or len(self.descriptors) >= _MOST:
            return None
        if not obj.is_cpu or obj.requires_grad or obj.nbytes < _LARGE:
            return None
        try:
            view = memoryview(obj.contiguous().reshape(-1)).cast("B")
        except (TypeError, ValueError, BufferError):  # a dtype that buffers do not have
            return None
        fd = os.memfd_create("tessera")
        self.descriptors.append(fd)
        at = 0
        while at < len(view):
            at += os.write(fd, view[at:])
        return len(self.descriptors) - 1, obj.dtype, tuple(obj.shape)


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
    def __init__(self, file, descriptors):
        super().__init__(file)
        self.descriptors = descriptors

    def persistent_load(self, found):
        number, dtype, shape = found
        fd = self.descriptors[number]
        buffer = _mapped(fd, os.fstat(fd).st_size)
        return torch.frombuffer(buffer, dtype=dtype).reshape(shape)


class Message:
    """A pickled message and the descriptors it needs."""

    def __init__(self, value):
        file = io.BytesIO()
        pickler = _Pickler(file) if hasattr(os, "memfd_create") else ForkingPickler(file)
        self.descriptors = []
        try:
            file.write(_COUNT.pack(0))
            pickler.dump(value)
        except BaseException:
            self.descriptors = getattr(pickler, "descriptors", [])
            self.close()
            raise
        self.descriptors = getattr(pickler, "descriptors", [])
        _COUNT.pack_into(file.getbuffer(), 0, len(self.descriptors))
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
    (count,) = _COUNT.unpack_from(data)
    descriptors = []
    if count:
        with socket.fromfd(pipe.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            byte, descriptors, _, _ = socket.recv_fds(sock, 1, count)
        if not byte or len(descriptors) != count:
            raise EOFError
    try:
        return _Unpickler(io.BytesIO(data[_COUNT.size :]), descriptors).load()
    finally:
        for fd in descriptors:
            os.close(fd)
