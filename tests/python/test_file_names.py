"""Names of saved files: long ones, and bytes that are not UTF-8; and `tessera check FILE`."""

import errno
import io
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import KIND

import tessera as torch
from tessera.utils.safetensors import load_file, safe_open, save_file

pytestmark = pytest.mark.skipif(KIND != "cpu", reason="files of the host")
ENV = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parent.parent)}
NAMES = {
    "236 bytes": b"a" * 233 + b".pt",
    "255 bytes": b"b" * 252 + b".pt",
    "85 characters of 3 bytes": "漢".encode() * 84 + b".pt",
    "Latin-1": b"caf\xe9.pt",
    "no text at all": bytes(range(0x80, 0x90)),
    "a line break": b"a\nb.pt",
}


class BytesPath:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


FORMS = {
    "str": os.fsdecode,
    "bytes": bytes,
    "PathLike": BytesPath,
    "Path": lambda p: Path(os.fsdecode(p)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_names(name, form, tmp_path):
    path = os.path.join(os.fsencode(tmp_path), NAMES[name])
    given = FORMS[form](path)
    x = torch.arange(5.0)
    for value in (1, 2):  # the second replaces the first
        torch.save({"x": x, "n": value}, given)
        for options in ({}, {"mmap": True}, {"weights_only": False}):
            loaded = torch.load(given, **options)
            assert loaded["n"] == value and loaded["x"].equal(x)
    assert torch.serialization.get_unsafe_globals_in_checkpoint(given) == []
    assert os.listdir(os.fsencode(tmp_path)) == [NAMES[name]]
    with open(path, "rb") as file:
        assert torch.load(file)["x"].equal(x)
    if form == "str":
        save_file({"x": x}, given)
        assert load_file(given)["x"].equal(x) and load_file(given, mmap=True)["x"].equal(x)
        with safe_open(given) as file:
            assert file.keys() == ["x"]
        assert os.listdir(os.fsencode(tmp_path)) == [NAMES[name]]


@pytest.mark.parametrize("name", ["255 bytes", "Latin-1"])
def test_errors_name_the_file(name, tmp_path):
    path = os.path.join(os.fsencode(tmp_path), NAMES[name])
    with pytest.raises(FileNotFoundError) as missing:
        torch.load(path)
    assert os.fsencode(missing.value.filename) == path
    with open(path, "wb") as file:
        file.write(b"no archive")
    with pytest.raises(Exception, match="corrupt file"):
        torch.load(path)
    folder = os.path.join(path, b"x.pt")
    with pytest.raises(NotADirectoryError) as wrong:
        torch.save(1, folder)
    assert os.fsencode(wrong.value.filename) == folder


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(OSError) as error:
        torch.save(1, tmp_path / ("c" * 256))
    assert error.value.errno == errno.ENAMETOOLONG
    assert os.listdir(tmp_path) == []


def test_what_a_killed_writer_of_a_long_name_left_is_removed(tmp_path):
    path = tmp_path / ("d" * 250)
    program = (
        "import os, threading, tessera as torch\n"
        "x = torch.zeros(40_000_000)\n"
        "def kill():\n"
        f"    while not os.listdir({str(tmp_path)!r}): pass\n"
        "    os.kill(os.getpid(), 9)\n"
        "threading.Thread(target=kill, daemon=True).start()\n"
        f"torch.save(x, {str(path)!r})\n"
    )
    subprocess.run([sys.executable, "-c", program], env=ENV, timeout=60)
    left = os.listdir(tmp_path)
    assert len(left) == 1
    torch.save(1, path)
    assert os.listdir(tmp_path) == [path.name]


def check(*paths):
    run = subprocess.run(
        [sys.executable, "-m", "tessera", "check", *paths], env=ENV, capture_output=True, timeout=60
    )
    return run.returncode, (run.stdout + run.stderr).decode()


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_check_archives(tmp_path):
    path = tmp_path / "a.pt"
    torch.save({"x": torch.arange(1000.0), "y": [1, "two"]}, path)
    status, text = check(path)
    assert status == 0 and "archive of torch.save" in text and "all checksums match" in text
    with zipfile.ZipFile(path) as file:
        info = file.getinfo("a/data/0")
    flip(path, info.header_offset + 600)  # among the numbers
    status, text = check(path)
    assert status == 1 and "the checksum of 'a/data/0' does not fit" in text
    # Without a checksum nothing is noticed where the file is mapped.
    torch.load(path, mmap=True)
    path.write_bytes(path.read_bytes()[:-30])
    status, text = check(path)
    assert status == 1 and "the file was cut" in text


def test_check_needs_no_ending(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9")
    torch.save(torch.zeros(3), path)
    status, text = check(path)
    assert status == 0 and "all checksums match" in text and "caf" in text


def test_check_names_what_has_to_be_allowed(tmp_path):
    torch.save(Ordinary(), tmp_path / "a.pt")
    status, text = check(tmp_path / "a.pt")
    assert status == 0 and "1 globals that are not data" in text and "Ordinary" in text


class Ordinary:
    pass


def test_check_a_missing_storage(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.zeros(3), path)
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            if not info.filename.endswith("/data/0"):
                new.writestr(info.filename, old.read(info))
    path.write_bytes(out.getvalue())
    status, text = check(path)
    assert status == 1 and "data/0" in text and "is missing" in text


def test_check_safetensors(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"x": torch.zeros(100), "y": torch.zeros(3)}, path)
    status, text = check(path)
    assert status == 0 and "2 tensors" in text and "there are no checksums" in text
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert check(path)[0] == 1
    path.write_bytes(struct.pack("<Q", 2**40) + data[8:])
    status, text = check(path)
    assert status == 1 and "no safetensors file" in text


def test_check_older_files_and_programs(tmp_path):
    program = tmp_path / "p.py"
    program.write_text("import torch\n")
    path = tmp_path / "a.pt"
    torch.save(1, path)
    status, text = check(path, program)
    assert status == 0 and "1 file: nothing missing" in text and "archive" in text
    status, text = check(tmp_path / "missing.pt")
    assert status == 2 and "No such file" in text
    (tmp_path / "empty.pt").write_bytes(b"")
    assert check(tmp_path / "empty.pt")[0] == 1


def test_other_files(tmp_path):
    """Traces of the profiler and stores of processes have such names too."""
    path = tmp_path / os.fsdecode(b"caf\xe9")
    with torch.profiler.profile() as profile:
        torch.zeros(3) + 1
    profile.export_chrome_trace(f"{path}.json")
    profile.export_chrome_trace(tmp_path / ("e" * 250 + ".json"))
    store = torch.distributed.FileStore(f"{path}.store", 1)
    store.set("a", "b")
    assert store.get("a") == b"b" and store.path == f"{path}.store"
    del store
    missing = tmp_path / "missing" / path.name
    with pytest.raises(Exception, match="No such file or directory"):
        profile.export_chrome_trace(missing)
    with pytest.raises(Exception, match=r"caf\\xe9: No such file or directory"):
        torch.distributed.FileStore(str(missing), 1)
