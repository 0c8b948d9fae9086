"""SummaryWriter: the files are what TensorBoard reads, whose reader was tried on them by hand."""

import struct
import zlib
from pathlib import Path

import pytest

import tessera as torch
from tessera.utils.tensorboard import SummaryWriter
from tessera.utils.tensorboard.event_file import _masked, crc32c


def fields(message):
    """{number: [values]} of an encoded message; nested ones are bytes."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind == 1:
            (value,) = struct.unpack("<d", message[at : at + 8])
            at += 8
        elif kind == 5:
            (value,) = struct.unpack("<f", message[at : at + 4])
            at += 4
        else:
            size = varint()
            value = message[at : at + size]
            at += size
        found.setdefault(key >> 3, []).append(value)
    return found


def events(folder):
    """(step, tag, fields of the value) of the one file in a folder, its checksums held to."""
    (path,) = [p for p in Path(folder).iterdir() if p.is_file()]
    raw, at, found = path.read_bytes(), 0, []
    while at < len(raw):
        (length,) = struct.unpack("<Q", raw[at : at + 8])
        assert raw[at + 8 : at + 12] == _masked(raw[at : at + 8])
        body = raw[at + 12 : at + 12 + length]
        assert raw[at + 12 + length : at + 16 + length] == _masked(body)
        at += 16 + length
        found.append(fields(body))
    assert found[0][3] == [b"brain.Event:2"]
    values = []
    for event in found[1:]:
        value = fields(fields(event[5][0])[1][0])
        values.append((event.get(2, [None])[0], value[1][0].decode(), value))
    return values


def test_checksum():
    assert crc32c(b"123456789") == 0xE3069283  # the standard's example
    assert crc32c(b"") == 0


def test_scalars_and_text(tmp_path):
    with SummaryWriter(tmp_path / "log") as writer:
        writer.add_scalar("loss", torch.tensor(0.5, requires_grad=True), 3)
        writer.add_scalar("loss", 2, global_step=300)
        writer.add_scalar("loss", torch.ones(1))
        writer.add_text("note", "hällo", 1)
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 7)
        assert writer.get_logdir() == str(tmp_path / "log")
    found = events(tmp_path / "log")
    assert [(step, tag, v[2][0]) for step, tag, v in found[:3]] == [
        (3, "loss", 0.5),
        (300, "loss", 2.0),
        (None, "loss", 1.0),
    ]
    step, tag, value = found[3]
    tensor = fields(value[8][0])
    assert (step, tag, tensor[1], tensor[8]) == (1, "note/text_summary", [7], ["hällo".encode()])
    assert fields(fields(value[9][0])[1][0])[1] == [b"text"]
    assert events(tmp_path / "log" / "both_b")[0][2][2] == [2.0]


def test_histograms(tmp_path):
    values = torch.cat([torch.full((3,), -1.0), torch.zeros(2), torch.full((5,), 2.0)])
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", values, 1)
        writer.add_histogram("h", values, 2, bins=3)
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("h", torch.ones(0))
    for (_, _, value), bins in zip(events(tmp_path), (None, 3)):
        proto = fields(value[5][0])
        assert (proto[1], proto[2], proto[3]) == ([-1.0], [2.0], [10.0])
        assert (proto[4], proto[5]) == ([7.0], [23.0])
        limits = struct.unpack(f"<{len(proto[6][0]) // 8}d", proto[6][0])
        counts = struct.unpack(f"<{len(proto[7][0]) // 8}d", proto[7][0])
        assert len(limits) == len(counts) and sum(counts) == 10 and sorted(limits) == list(limits)
        if bins:
            assert limits == (0.0, 1.0, 2.0) and counts == (3.0, 2.0, 5.0)


def pixels_of(png):
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        name, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(
            name + content
        )
        packed += content if name == b"IDAT" else b""
        at += 12 + size
    return zlib.decompress(packed)


def test_images(tmp_path):
    image = torch.arange(12, dtype=torch.uint8).reshape(3, 2, 2)  # C, H, W
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("i", image, 1)
        writer.add_image("i", torch.tensor([[0.0, 0.5], [1.0, 2.0]]), 2, dataformats="HW")
        writer.add_images("i", torch.ones(3, 1, 1, 1), 3)
        with pytest.raises(AssertionError, match="input format"):
            writer.add_image("i", image, dataformats="HW")
    first, second, third = [fields(value[4][0]) for _, _, value in events(tmp_path)]
    assert (first[1], first[2], first[3]) == ([2], [2], [3])
    assert pixels_of(first[4][0]) == bytes([0, 0, 4, 8, 1, 5, 9, 0, 2, 6, 10, 3, 7, 11])
    assert pixels_of(second[4][0]) == bytes([0, 0, 127, 0, 255, 255])
    assert pixels_of(third[4][0]) == bytes([0, 255, 255, 0, 255, 0])


def test_files_and_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="_mine")
    assert writer.log_dir.startswith("runs/") and writer.log_dir.endswith("_mine")
    (file,) = Path(writer.log_dir).iterdir()
    assert file.name.startswith("events.out.tfevents.")
    writer.add_scalar("x", 1)
    writer.flush()
    size = file.stat().st_size
    writer.close()
    writer.add_scalar("x", 2)  # after close() it goes on
    writer.close()
    assert file.stat().st_size > size
    with pytest.raises(NotImplementedError, match="add_graph"):
        writer.add_graph(torch.nn.Linear(1, 1))
