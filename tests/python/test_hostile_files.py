"""Hostile and broken files: nothing runs, nothing crashes, each is refused with a reason or holds
what it holds in PyTorch's reading too."""

import io
import os
import pickle
import re
import sys
import time

import hostile_files
import pytest

import tessera as torch

FILES = dict(hostile_files.files())
REFUSALS = (pickle.UnpicklingError, RuntimeError, EOFError)
WATCHED = re.compile(
    r"^(os\.|subprocess\.|exec$|compile$|open$|socket\.|ctypes\.|pickle\.|import$|shutil\.)"
)
_events = None


def _watch(event, args):
    if _events is not None and WATCHED.match(event):
        _events.append((event, args))


sys.addaudithook(_watch)  # cannot be taken off again; it only looks while a file is loaded


def load(data):
    """Loads, and sees to it that nothing is run, opened or imported meanwhile."""
    global _events
    torch.load(io.BytesIO(hostile_files.saved()))  # whatever loads when it is first needed
    began = time.monotonic()
    file = io.BytesIO(data)
    _events = []
    try:
        return torch.load(file)
    finally:
        happened, _events = _events, None
        assert not happened, happened
        assert not os.path.exists(hostile_files.CANARY)
        assert time.monotonic() - began < 10


def test_there_are_enough():
    assert len(FILES) >= 700
    assert FILES == dict(hostile_files.files())  # the same at every run


@pytest.mark.parametrize("kind", sorted({name.split(":")[0] for name in FILES}))
def test_files_are_refused_with_a_reason(kind):
    wrong = []
    for name, data in FILES.items():
        if name.split(":")[0] != kind:
            continue
        try:
            wrong.append((name, "was loaded", load(data)))
        except REFUSALS as error:
            if len(str(error)) < 20 or "<BytesIO>" not in str(error) and kind != "tensors":
                wrong.append((name, "says too little", str(error)))
            if len(str(error)) > 1500:
                wrong.append((name, "says too much", len(str(error))))
    assert not wrong, f"{len(wrong)}: {wrong[:10]}"


@pytest.mark.parametrize("name", ["gadgets: reduce os.system", "machine: deep tuples as a key"])
def test_the_reason_names_file_entry_and_byte(name):
    with pytest.raises(pickle.UnpicklingError, match=r"<BytesIO>: data\.pkl, byte \d+: "):
        load(FILES[name])


def test_from_a_file_too(tmp_path):
    path = tmp_path / "model.pt"
    for name in list(FILES)[::7]:
        path.write_bytes(FILES[name])
        for mmap in (False, True):
            if mmap and name == "zips: wrong crc":
                continue  # a checksum would read what is to be read later
            with pytest.raises((*REFUSALS, OSError)):
                torch.load(path, mmap=mmap)


def good(value):
    return list(value) == ["w", "n"] and value["n"] == 3 and value["w"].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "name,data", list(hostile_files.odd_files()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_odd_files_are_read(name, data):
    value = load(data)
    assert value["n"] == 3 and value["w"].tolist() == [1, 2, 3, 4]


def test_turned_bits():
    refused = 0
    for name, data in hostile_files.flips():
        try:
            assert good(load(data)), name
        except REFUSALS:
            refused += 1
    assert refused > 350


def test_changed_pickles():
    refused = 0
    for _, data in hostile_files.mutations():
        try:
            repr(load(data))
        except REFUSALS:
            refused += 1
    assert refused > 250


def test_the_generator_can_hurt():
    """The same file does what it says where it is told to run."""
    data = hostile_files.saved(hostile_files.call("os", "getcwd"))
    assert torch.load(io.BytesIO(data), weights_only=False) == os.getcwd()
    with pytest.raises(pickle.UnpicklingError, match="os.getcwd"):
        load(data)
