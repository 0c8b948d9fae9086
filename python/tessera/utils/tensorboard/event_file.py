"""The files TensorBoard reads: records with checksums, each a message of protocol buffers.

Only the few messages that are written are spelled out here, by their fields' numbers.
"""

import functools
import os
import socket
import struct
import threading
import time


@functools.cache
def _crc_table():
    """Of CRC-32C, which has another polynomial than zlib's."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


def crc32c(data):
    table, crc = _crc_table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    """Data with its length, and checksums of both."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _varint(n):
    n &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def integer(field, value):
    return _varint(field << 3) + _varint(int(value))


def double(field, value):
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def single(field, value):
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def data(field, value):
    """Text, bytes, or a message that is encoded already."""
    value = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def doubles(field, values):
    return data(field, struct.pack(f"<{len(values)}d", *values))


def event(wall_time, step=None, **content):
    """`summary`: encoded values; `file_version`: the first event of a file."""
    body = double(1, wall_time)
    if step is not None:
        body += integer(2, step)
    if "file_version" in content:
        body += data(3, content["file_version"])
    if "summary" in content:
        body += data(5, content["summary"])
    return body


class FileWriter:
    """Appends events to a file of its own in a folder."""

    _count = 0
    _lock = threading.Lock()

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self._log_dir = str(log_dir)
        os.makedirs(self._log_dir, exist_ok=True)
        with FileWriter._lock:
            number, FileWriter._count = FileWriter._count, FileWriter._count + 1
        now = time.time()
        name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}.{number}"
        self.path = os.path.join(self._log_dir, name + filename_suffix)
        self._file = open(self.path, "ab")
        self._mine = threading.Lock()
        self._queue, self._max_queue = 0, max_queue
        self._flushed, self._flush_secs = time.monotonic(), flush_secs
        self._write(event(now, file_version="brain.Event:2"))
        self.flush()

    def get_logdir(self):
        return self._log_dir

    def _write(self, encoded):
        with self._mine:
            if self._file.closed:  # as PyTorch's, it goes on in the same file
                self._file = open(self.path, "ab")
            self._file.write(record(encoded))
            self._queue += 1
            late = time.monotonic() - self._flushed > self._flush_secs
            if self._queue >= self._max_queue or late:
                self._file.flush()
                self._queue, self._flushed = 0, time.monotonic()

    def add_summary(self, summary, global_step=None, walltime=None):
        """Encoded values at a step."""
        when = time.time() if walltime is None else walltime
        step = None if global_step is None else int(global_step)
        self._write(event(when, step, summary=summary))

    def flush(self):
        with self._mine:
            if not self._file.closed:
                self._file.flush()

    def close(self):
        with self._mine:
            self._file.close()
