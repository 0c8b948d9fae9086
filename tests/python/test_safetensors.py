"""safetensors files: the format byte by byte, round trips, and what is refused."""

import importlib.util
import json
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import save_cases

import tessera as torch
from tessera.utils.safetensors import (
    load,
    load_file,
    load_model,
    safe_open,
    save,
    save_file,
    save_model,
)

NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
}


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_every_dtype_and_layout():
    tensors = {d: save_cases.numbers(torch, 24, d).reshape(4, 6) for d in NAMES}
    tensors.update({f"{d}.t": t.clone().t() for d, t in list(tensors.items())})
    tensors["none"], tensors["one"] = torch.zeros(0, 3), torch.tensor(2.5)
    data = save(tensors, metadata={"step": "3", "größe": 'a\n"b" \x01'})
    made = load(data)
    assert set(made) == set(tensors)
    for name, t in tensors.items():
        assert made[name].dtype == t.dtype and made[name].shape == t.shape
        assert made[name].is_contiguous()
        assert save_cases.bits(torch, made[name]) == save_cases.bits(torch, t)
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0 and header.pop("__metadata__")["größe"] == 'a\n"b" \x01'
    for name, about in header.items():
        assert about["dtype"] == NAMES[name.split(".")[0]] if name in NAMES else True
        begin, end = about["data_offsets"]
        assert begin % max(1, tensors[name].dtype.itemsize) == 0
        assert end - begin == tensors[name].nbytes
    with pytest.raises(NotImplementedError, match="complex128"):
        save({"x": torch.zeros(2, dtype=torch.complex128)})


def test_a_file_made_by_hand():
    data = struct.pack("<4f", 1, 2, 3, 4) + struct.pack("<2q", -1, 5)
    header = {
        "b": entry("I64", [2], 16, 32),
        "__metadata__": {"format": "pt"},
        "a": {**entry("F32", [2, 2], 0, 16), "more": [{"x": [1.5e3, None, True]}]},
    }
    made = load(file_of(header, data))
    assert list(made) == ["a", "b"]
    assert made["a"].tolist() == [[1, 2], [3, 4]] and made["b"].tolist() == [-1, 5]
    assert load(file_of(b"{}   ")) == {}
    escaped = b'{"\\u00e4\\ud83d\\ude00\\n":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}'
    assert list(load(file_of(escaped, b"\x07"))) == ["ä\U0001f600\n"]


def test_files_devices_and_one_by_one(tmp_path, device):
    path = tmp_path / "m.safetensors"
    x = torch.arange(12.0, device=device).reshape(3, 4)
    tensors = {"w": x, "p": torch.nn.Parameter(torch.ones(2, device=device)), "n": x[1].clone()}
    save_file(tensors, path, metadata={"a": "b"})
    made = load_file(path, device=device)
    assert made["w"].tolist() == x.tolist() and made["w"].device == x.device
    assert not made["p"].requires_grad
    before = path.read_bytes()
    late = load_file(str(path), mmap=True)
    late["w"].add_(1)
    assert late["w"].tolist() == (x + 1).tolist() and path.read_bytes() == before
    with safe_open(path, framework="pt", device=device) as file:
        assert file.keys() == ["n", "p", "w"] and file.metadata() == {"a": "b"}
        assert file.get_tensor("n").tolist() == x[1].tolist() and file.get_shape("w") == [3, 4]
        with pytest.raises(KeyError, match="nothing"):
            file.get_tensor("nothing")
    with pytest.raises(ValueError, match="closed"):
        file.get_tensor("n")
    assert [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]


def test_what_cannot_be_saved(tmp_path):
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="Some tensors share memory: 'a' and 'b'"):
        save({"a": x, "b": x[2:]})
    with pytest.raises(RuntimeError, match="share memory"):
        save({"a": x.reshape(2, 3).t(), "c": x[1:2]})
    assert set(load(save({"a": x[:3], "b": x[3:]}))) == {"a", "b"}
    path = tmp_path / "x"
    save_file({"a": x}, path)
    for bad, error in (
        ([x], ValueError),
        ({"a": 3}, ValueError),
        ({1: x}, TypeError),
        ({"__metadata__": x}, ValueError),
        ({"a": torch.empty(2, device="meta")}, NotImplementedError),
    ):
        with pytest.raises(error):
            save_file(bad, path)
    with pytest.raises(TypeError, match="metadata"):
        save_file({"a": x}, path, metadata={"a": 1})
    with pytest.raises(TypeError, match="metadata"):
        save_file({"a": x}, path, metadata={"a": threading.Lock()})
    assert load_file(path)["a"].tolist() == x.tolist()
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "none")


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
        self.b.weight = self.a.weight


def test_models_with_tied_weights(tmp_path):
    path, model, other = tmp_path / "m", Tied(), Tied()
    save_model(model, path, metadata={"format": "pt"})
    assert set(load_file(path)) == {"a.weight", "a.bias", "b.bias"}
    assert load_model(other, path) == ([], [])
    assert other.b.weight is other.a.weight
    assert other.b.weight.tolist() == model.a.weight.tolist()
    with pytest.raises(RuntimeError, match="missing .*weight"):
        load_model(torch.nn.LayerNorm(2), path)
    missing, unexpected = load_model(torch.nn.LayerNorm(2), path, strict=False)
    assert missing == ["weight", "bias"] and len(unexpected) == 3


@pytest.mark.skipif(importlib.util.find_spec("safetensors"), reason="the package is installed")
def test_programs_find_it_under_its_own_name(tmp_path):
    program = tmp_path / "p.py"
    program.write_text(
        "import torch\n"
        "from safetensors import safe_open\n"
        "from safetensors.torch import load_file, save_file\n"
        "save_file({'w': torch.ones(2)}, 'm.safetensors')\n"
        "with safe_open('m.safetensors', framework='pt', device='cpu') as f:\n"
        "    print(f.get_tensor('w').tolist(), list(load_file('m.safetensors')))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parent.parent)}
    command = [sys.executable, "-m", "tessera", "run", program]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout == "[1.0, 1.0] ['w']\n", done.stderr


F = entry("F32", [2], 0, 8)
BAD = {
    "nothing": b"",
    "seven bytes": b"\0" * 7,
    "header beyond the end": struct.pack("<Q", 100) + b"{}",
    "header of 2**63": struct.pack("<Q", 2**63) + b"{}",
    "header over the limit": struct.pack("<Q", 100_000_001) + b"{}",
    "no brace": file_of(b" {}"),
    "empty header": file_of(b""),
    "not utf-8": file_of(b'{"\xff":1}'),
    "surrogate": file_of(b'{"\xed\xa0\x80":{}}'),
    "half a pair": file_of(b'{"\\ud800":{}}'),
    "bad escape": file_of(b'{"\\x":{}}'),
    "control character": file_of(b'{"\n":{}}'),
    "no end": file_of(b'{"a"'),
    "open string": file_of(b'{"a'),
    "something after it": file_of(b"{} {}"),
    "not an object": file_of(b'{"a":[1]}'),
    "key without quotes": file_of(b"{a:1}"),
    "comma at the end": file_of(b'{"__metadata__":{},}'),
    "metadata of numbers": file_of({"__metadata__": {"a": 1}}),
    "metadata twice": file_of(b'{"__metadata__":{"a":"1","a":"2"}}'),
    "no dtype": file_of({"a": {"shape": [], "data_offsets": [0, 4]}}, b"\0" * 4),
    "no shape": file_of({"a": {"dtype": "F32", "data_offsets": [0, 4]}}, b"\0" * 4),
    "no offsets": file_of({"a": {"dtype": "F32", "shape": []}}, b"\0" * 4),
    "unknown dtype": file_of({"a": entry("F33", [1], 0, 4)}, b"\0" * 4),
    "dtype a number": file_of({"a": entry(4, [1], 0, 4)}, b"\0" * 4),
    "negative size": file_of({"a": entry("F32", [-1], 0, 4)}, b"\0" * 4),
    "size a float": file_of({"a": entry("F32", [1.0], 0, 4)}, b"\0" * 4),
    "size of 65 bits": file_of({"a": entry("F32", [2**65], 0, 4)}, b"\0" * 4),
    "product overflows": file_of({"a": entry("F32", [2**40, 2**40], 0, 4)}, b"\0" * 4),
    "product overflows beside 0": file_of({"a": entry("F32", [2**40, 2**40, 0], 0, 0)}),
    "product wraps to fit": file_of({"a": entry("U8", [2**32, 2**32 + 1], 0, 4)}, b"\0" * 4),
    "too many dimensions": file_of({"a": entry("U8", [1] * 65, 0, 1)}, b"\0"),
    "too few bytes": file_of({"a": entry("F32", [2], 0, 4)}, b"\0" * 4),
    "too many bytes": file_of({"a": entry("F32", [1], 0, 8)}, b"\0" * 8),
    "turned offsets": file_of({"a": entry("F32", [1], 4, 0)}, b"\0" * 4),
    "offsets of three": file_of({"a": {**F, "data_offsets": [0, 8, 9]}}, b"\0" * 8),
    "beyond the end": file_of({"a": F}, b"\0" * 7),
    "bytes left over": file_of({"a": F}, b"\0" * 9),
    "gap at the beginning": file_of({"a": entry("F32", [1], 4, 8)}, b"\0" * 8),
    "gap between": file_of({"a": F, "b": entry("U8", [1], 9, 10)}, b"\0" * 10),
    "overlap": file_of({"a": F, "b": entry("F32", [2], 4, 12)}, b"\0" * 12),
    "the same bytes twice": file_of({"a": F, "b": F}, b"\0" * 8),
    "deep": file_of(b'{"a":{"x":' + b"[" * 100000 + b"]" * 100000 + b"}}"),
    "leading zero": file_of(b'{"a":{"dtype":"U8","shape":[01],"data_offsets":[0,1]}}', b"\0"),
    "half a byte": file_of({"a": entry("F4", [1], 0, 0)}),
}
BAD["name twice"] = file_of(
    b'{"a":'
    + json.dumps(F).encode()
    + b',"a":'
    + json.dumps(entry("U8", [0], 8, 8)).encode()
    + b"}",
    b"\0" * 8,
)


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused(name, tmp_path):
    with pytest.raises(RuntimeError, match=r"<bytes>: safetensors.*byte \d+: "):
        load(BAD[name])
    path = tmp_path / "bad.safetensors"
    path.write_bytes(BAD[name])
    with pytest.raises(RuntimeError, match="bad.safetensors"):
        load_file(path)


def test_dtypes_that_are_not_here_are_named():
    for name, bits in (("F8_E4M3", 8), ("U16", 16), ("F4", 4)):
        data = file_of({"w": entry(name, [8], 0, bits)}, b"\0" * bits)
        with pytest.raises(NotImplementedError, match=f"'w' is of dtype {name}"):
            load(data)


def test_every_cut_and_many_flips():
    data = save({"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, 2])}, {"k": "v"})
    for size in range(len(data)):
        with pytest.raises(RuntimeError):
            load(data[:size])
    header = 8 + struct.unpack("<Q", data[:8])[0]
    loaded = 0
    for at in range(header):
        for flip in (1, 4, 32, 128):
            changed = bytearray(data)
            changed[at] ^= flip
            try:
                load(bytes(changed))
                loaded += 1  # another name, another dtype of the same width
            except (RuntimeError, NotImplementedError):
                pass
    assert loaded < header


def test_torch_load_points_to_it(tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / "x.safetensors")
    with pytest.raises(Exception, match="safetensors.load_file"):
        torch.load(tmp_path / "x.safetensors")
