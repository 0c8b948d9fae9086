"""Pickles and archives made opcode by opcode and byte by byte; every number can be a lie."""

import struct
import zlib

# ---- pickles, opcode by opcode -------------------------------------------------------------------

PROTO, STOP, MARK, REDUCE, NEWOBJ, BUILD, PERSID = (
    b"\x80\x02",
    b".",
    b"(",
    b"R",
    b"\x81",
    b"b",
    b"Q",
)


def text(s):
    data = s.encode() if isinstance(s, str) else s
    return b"X" + struct.pack("<I", len(data)) + data


def number(n):
    if 0 <= n < 256:
        return b"K" + bytes([n])
    if -(2**31) <= n < 2**31:
        return b"J" + struct.pack("<i", n)
    data = n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def put(value):
    """Plain values as opcodes; bytes are opcodes already."""
    if isinstance(value, bytes):
        return value
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return number(value)
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, tuple):
        return MARK + b"".join(map(put, value)) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(map(put, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(put(k) + put(v) for k, v in value.items()) + b"u"
    raise TypeError(type(value))


def name(module, attribute):
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


def call(module, attribute, *args):
    return name(module, attribute) + put(tuple(args)) + REDUCE


ORDERED = call("collections", "OrderedDict")


def storage(key="0", kind="FloatStorage", location="cpu", numel=4, module="torch", word="storage"):
    return put((word, name(module, kind), key, location, numel)) + PERSID


def tensor(
    memory=None, offset=0, size=(4,), stride=(1,), grad=False, hooks=ORDERED, function=None, more=()
):
    memory = storage() if memory is None else memory
    args = (memory, offset, size, stride, grad, hooks, *more)
    return call("torch._utils", function or "_rebuild_tensor_v2", *args)


FOUR = struct.pack("<4f", 1, 2, 3, 4)

# ---- archives, byte by byte ----------------------------------------------------------------------


class Entry:
    """One entry, every number of which can be a lie."""

    def __init__(self, name, data=b"", **lies):
        self.name = name.encode("latin1") if isinstance(name, str) else name
        self.data, self.lies = data, lies

    def get(self, what, otherwise):
        return self.lies.get(what, otherwise)


def archive(entries, before=b"", after=b"", comment=b"", **lies):
    """The bytes of an archive; `lies` are about the directory."""
    out = bytearray(before)
    placed = []
    for e in entries:
        at = len(out)
        crc, size = zlib.crc32(e.data), len(e.data)
        extra = e.get("local_extra", b"")
        local_name = e.get("local_name", e.name)
        out += struct.pack(
            "<IHHHIIIIHH",
            e.get("local_signature", 0x04034B50),
            20,
            e.get("local_flags", e.get("flags", 0)),
            e.get("local_method", e.get("method", 0)),
            0,
            e.get("local_crc", e.get("crc", crc)),
            e.get("local_packed", e.get("packed", size)),
            e.get("local_size", e.get("size", size)),
            len(local_name),
            e.get("local_extra_size", len(extra)),
        )
        out += local_name + extra + e.data + e.get("behind", b"")
        placed.append((at, crc, size))
    begin = len(out)
    out += lies.get("gap", b"")
    directory = bytearray()
    for e, (at, crc, size) in zip(entries, placed, strict=True):
        extra = e.get("extra", b"")
        directory += struct.pack(
            "<IHHHHIIIIHHHHHII",
            e.get("signature", 0x02014B50),
            20,
            20,
            e.get("flags", 0),
            e.get("method", 0),
            0,
            e.get("crc", crc),
            e.get("packed", size),
            e.get("size", size),
            e.get("name_size", len(e.name)),
            e.get("extra_size", len(extra)),
            0,
            e.get("disk", 0),
            0,
            0,
            e.get("offset", at),
        )
        directory += e.name + extra
    begin = len(out)
    out += directory + lies.get("behind_directory", b"")
    count = lies.get("count", len(entries))
    where, size = lies.get("directory", begin), lies.get("directory_size", len(directory))
    if "end64" in lies:
        wide = {"count": count, "size": size, "offset": where, "at": len(out), **lies["end64"]}
        out += struct.pack(
            "<IQHHIIQQQQ",
            wide.get("signature", 0x06064B50),
            wide.get("record", 44),
            45,
            45,
            0,
            wide.get("disk", 0),
            wide.get("count_here", wide["count"]),
            wide["count"],
            wide["size"],
            wide["offset"],
        )
        out += struct.pack("<IIQI", 0x07064B50, 0, wide["at"], 1)
        count = lies.get("short_count", 0xFFFF)
        where = size = lies.get("short_rest", 0xFFFFFFFF)
    out += struct.pack(
        "<IHHHHIIH",
        lies.get("end", 0x06054B50),
        lies.get("end_disk", 0),
        0,
        lies.get("count_here", count),
        count,
        size,
        where,
        lies.get("comment_size", len(comment)),
    )
    return bytes(out + comment + after)


GOOD = put({"w": tensor(), "n": 3})


def saved(pickle=GOOD, data=None, folder="x", more=(), **lies):
    """An archive as torch.save makes it, around a pickle."""
    data = {"0": FOUR} if data is None else data
    body = pickle if pickle.startswith(b"\x80") else PROTO + pickle + STOP
    entries = [Entry(f"{folder}/data.pkl", body)]
    entries += [Entry(f"{folder}/data/{k}", v) for k, v in data.items()]
    entries += [Entry(f"{folder}/version", b"3\n"), *more]
    return archive(entries, **lies)
