"""torch.save and torch.load: round trips, PyTorch's own files, where tensors go, what is named."""

import collections
import dataclasses
import importlib
import io
import os
import pickle
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import hostile_files
import pytest
import save_cases
from save_cases import difference

import tessera as torch
from tessera import nn

CASES = save_cases.cases(torch)
ENV = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parent.parent)}
RECORDED = Path(__file__).parent / "data" / "saved"


def again(value, **options):
    data = io.BytesIO()
    torch.save(value, data)
    data.seek(0)
    return torch.load(data, **options)


def same(a, b):
    assert difference(torch, a, b) is None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)

    def forward(self, x):
        return self.layer(x).relu()


@dataclasses.dataclass
class Settings:
    rate: float
    names: list


class Slotted:
    __slots__ = ("a",)


# ---- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("weights_only", [True, False])
def test_every_case(name, weights_only, tmp_path):
    same(CASES[name], again(CASES[name], weights_only=weights_only))
    path = tmp_path / "x.pt"
    torch.save(CASES[name], path)
    same(CASES[name], torch.load(str(path), weights_only=weights_only))
    same(CASES[name], torch.load(path, mmap=True, weights_only=weights_only))
    assert [p.name for p in tmp_path.iterdir()] == ["x.pt"]


@pytest.mark.parametrize("file", sorted(RECORDED.glob("*")), ids=lambda p: p.name)
def test_files_that_pytorch_wrote(file):
    same(CASES[file.stem], torch.load(file))
    same(CASES[file.stem], torch.load(file, weights_only=False))
    with open(file, "rb") as opened:
        same(CASES[file.stem], torch.load(opened))
    same(CASES[file.stem], torch.load(io.BytesIO(file.read_bytes())))


def test_there_are_recorded_files():
    assert len(list(RECORDED.glob("*.pt"))) >= 6 and len(list(RECORDED.glob("*.legacy"))) >= 2


def test_attributes_layouts_and_meta():
    x, p = torch.ones(2), nn.Parameter(torch.zeros(2))
    x.note, p.note = "kept", [1]
    made = again([x, p])
    assert made[0].note == "kept" and made[1].note == [1] and type(made[1]) is nn.Parameter
    constants = [torch.strided, torch.channels_last, torch.preserve_format]
    assert again(constants) == constants
    meta = again(torch.empty(2, 3, device="meta"))
    assert meta.is_meta and meta.shape == (2, 3)
    classes = [torch.Tensor, nn.Parameter, torch.FloatStorage, collections.OrderedDict]
    assert again(classes) == classes


def test_storages():
    x = torch.tensor([1.0, 2.0, 3.0])
    a, b = again([x.storage(), x])
    assert a.tolist() == [1.0, 2.0, 3.0] and isinstance(a, torch.FloatStorage)
    assert a.data_ptr() == b.data_ptr()
    assert again(x.untyped_storage()).tolist() == x.untyped_storage().tolist()
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        again([x, x.view(torch.int32)])
    odd = torch.zeros(5, dtype=torch.uint8)[:4].view(torch.int16)
    same(odd, again(odd))


def test_shared_memory_stays_shared():
    x = torch.zeros(6)
    made = again({"a": x, "b": x[2:], "c": x.reshape(2, 3).t(), "d": torch.zeros(6)})
    made["a"].fill_(7)
    assert made["b"].tolist() == [7.0] * 4 and made["c"].sum().item() == 42.0
    assert made["d"].tolist() == [0.0] * 6
    one, two = again([x, x])
    assert one is two


def test_a_small_view_saves_its_storage_and_a_clone_does_not():
    big = torch.zeros(10000)
    view, clone = io.BytesIO(), io.BytesIO()
    torch.save(big[:2], view)
    torch.save(big[:2].clone(), clone)
    assert len(view.getvalue()) > 40000 > 2000 > len(clone.getvalue())


def test_pending_work_and_graphs():
    x = torch.ones(4, requires_grad=True)
    y = x * 2 + 1
    made = again(y)
    assert made.tolist() == [3.0] * 4 and made.requires_grad and made.is_leaf


def test_modules_and_optimizers_go_on(tmp_path):
    torch.manual_seed(0)
    data, target = torch.randn(8, 2), torch.randn(8, 3)

    def steps(net, optimizer, count):
        losses = []
        for _ in range(count):
            optimizer.zero_grad()
            loss = (net(data) - target).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    steps(net, optimizer, 3)
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "c.pt")
    torch.save(net, tmp_path / "whole.pt")
    whole = torch.load(tmp_path / "whole.pt", weights_only=False)
    assert whole(data).tolist() == net(data).tolist() and type(whole) is Net
    expected = steps(net, optimizer, 3)
    fresh = Net()
    other = torch.optim.Adam(fresh.parameters(), lr=0.5)
    saved = torch.load(tmp_path / "c.pt")
    fresh.load_state_dict(saved["net"])
    other.load_state_dict(saved["optimizer"])
    assert steps(fresh, other, 3) == expected


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5, -1])
def test_protocols_name_pytorch(protocol):
    data = io.BytesIO()
    torch.save([torch.ones(2), Net(), torch.float32], data, pickle_protocol=protocol)
    assert b"tessera" not in data.getvalue() and b"torch" in data.getvalue()
    made = torch.load(io.BytesIO(data.getvalue()), weights_only=False)
    assert made[0].tolist() == [1.0, 1.0] and made[2] is torch.float32
    if protocol in (1, 4, 5, -1):
        with pytest.raises(pickle.UnpicklingError, match="protocol|opcode"):
            torch.load(io.BytesIO(data.getvalue()))
    plain = io.BytesIO()
    torch.save({"w": torch.ones(2)}, plain, pickle_protocol=protocol)
    plain.seek(0)
    if protocol in (2, 3):
        assert torch.load(plain)["w"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("protocol", [2, 4])
def test_classes_are_where_pytorch_has_them(protocol):
    """A whole module names its classes by PyTorch's files, and those lead back to ours."""
    layers = (
        nn.MultiheadAttention(4, 2),
        nn.GRUCell(2, 3),
        nn.LazyConv1d(2, 3),
        nn.ParameterList([torch.ones(2)]),
        torch.optim.AdamW([torch.ones(2)]),
        torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1)], lr=0.1), 3),
    )
    data = io.BytesIO()
    torch.save(layers, data, pickle_protocol=protocol)
    text = data.getvalue()
    for module in ("activation", "rnn", "conv", "container"):
        assert b"torch.nn.modules." + module.encode() in text
    for ours in (
        b"tessera",
        b"attention",
        b"rnn_cells",
        b"lazy_conv",
        b"param_container",
        b"simple",
    ):
        assert ours not in text
    made = torch.load(io.BytesIO(text), weights_only=False)
    assert [type(m) for m in made] == [type(m) for m in layers]


def test_text_that_looks_like_a_module_is_not_renamed():
    value = {"ctessera\nx": "tessera.nn", "b": b"ctessera\n", "n": "ctessera._utils\n_f\n"}
    assert again(value) == value


# ---- the archive ---------------------------------------------------------------------------------


def test_the_archive_is_pytorchs(tmp_path):
    path = tmp_path / "model.v1.pt"
    torch.save({"w": torch.arange(5), "b": torch.ones(3)}, path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert names == [
            f"model.v1/{n}" for n in ("data.pkl", "byteorder", "data/0", "data/1", "version")
        ]
        assert archive.read("model.v1/version") == b"3\n"
        assert archive.read("model.v1/byteorder") == b"little"
        for info in archive.infolist():
            assert info.compress_type == zipfile.ZIP_STORED
            name, extra = data[info.header_offset + 26 :][:2], data[info.header_offset + 28 :][:2]
            begin = info.header_offset + 30
            begin += int.from_bytes(name, "little") + int.from_bytes(extra, "little")
            assert begin % 64 == 0
            assert data[begin : begin + info.file_size] == archive.read(info)
    torch.save({"w": torch.arange(5), "b": torch.ones(3)}, path)
    assert path.read_bytes() == data  # the same bytes whenever it is saved


def test_many_entries():
    value = [torch.tensor([i]) for i in range(70000)]  # more than 16 bits count
    made = again(value)
    assert len(made) == 70000 and all(t[0] == i for i, t in list(enumerate(made))[::1000])


def rewritten(value, change):
    """The archive of a value with entries changed."""
    data, out = io.BytesIO(), io.BytesIO()
    torch.save(value, data)
    with zipfile.ZipFile(data) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for info in old.infolist():
            changed = change(info.filename.split("/", 1)[1], old.read(info))
            if changed is not None:
                new.writestr(info.filename, changed)
    return out.getvalue()


@pytest.mark.parametrize("dtype", save_cases.DTYPES)
def test_files_of_big_endian_machines(dtype):
    x = save_cases.numbers(torch, 24, dtype)
    width = x.dtype.itemsize // (2 if x.is_complex() else 1)

    def turn(name, content):
        if name == "byteorder":
            return b"big"
        if name == "data/0":
            parts = (content[i : i + width][::-1] for i in range(0, len(content), width))
            return b"".join(parts)
        return content

    same(x, torch.load(io.BytesIO(rewritten(x, turn))))
    silent = rewritten(x, lambda n, c: None if n == "byteorder" else turn(n, c))
    before = torch.serialization.get_default_load_endianness()
    torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.BIG)
    try:
        same(x, torch.load(io.BytesIO(silent)))
    finally:
        torch.serialization.set_default_load_endianness(before)


def test_archives_packed_by_other_programs():
    value = CASES["checkpoint"]
    same(value, torch.load(io.BytesIO(rewritten(value, lambda name, content: content))))


# ---- files and places ----------------------------------------------------------------------------


def test_kinds_of_files(tmp_path):
    value = {"x": torch.arange(100000)}
    path = tmp_path / "ü x.pt"
    for target in (path, str(path), tmp_path / b"bytes".decode()):
        torch.save(value, target)
        same(value, torch.load(target))
    with open(tmp_path / "y", "wb") as file:
        torch.save(value, file)
    with open(tmp_path / "y", "rb") as file:
        same(value, torch.load(file))
    with open(tmp_path / "y", "rb", buffering=0) as file:
        same(value, torch.load(file))
    with open(tmp_path / "y", "rb") as file:
        same(value, torch.load(file, weights_only=False))

    class Reader:
        def __init__(self, data):
            self.data = io.BytesIO(data)

        def read(self, *args):
            return self.data.read(*args)

    same(value, torch.load(Reader((tmp_path / "y").read_bytes())))


def test_a_file_that_fails_while_it_is_written():
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

    class Short:
        def write(self, data):
            return len(data) - 1

    for target in (Full(), Short()):
        with pytest.raises(OSError):
            torch.save(torch.ones(3), target)


def test_bad_targets_and_sources(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file.*none.pt"):
        torch.load(tmp_path / "none.pt")
    with pytest.raises(FileNotFoundError, match="no/x.pt"):
        torch.save(1, tmp_path / "no" / "x.pt")
    with pytest.raises(IsADirectoryError):
        torch.save(1, tmp_path)
    with pytest.raises(IsADirectoryError):
        torch.load(tmp_path)
    for bad in (3, None, [1]):
        with pytest.raises(AttributeError, match="file-like"):
            torch.save(1, bad)
        with pytest.raises(AttributeError, match="seekable"):
            torch.load(bad)
    with pytest.raises(EOFError):
        torch.load(io.BytesIO())
    with pytest.raises(EOFError):
        torch.load(io.BytesIO(), weights_only=False)
    with pytest.raises(ValueError, match="mmap"):
        torch.load(io.BytesIO(), mmap=True)
    with pytest.raises(RuntimeError, match="pickle_module"):
        torch.load(io.BytesIO(), weights_only=True, pickle_module=pickle)


def test_what_cannot_be_pickled_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(1, path)
    with pytest.raises((TypeError, pickle.PicklingError)):
        torch.save({"a": torch.ones(2), "lock": threading.Lock()}, path)
    assert torch.load(path) == 1 and len(list(tmp_path.iterdir())) == 1


def test_links_permissions_and_pipes(tmp_path):
    path, link = tmp_path / "x.pt", tmp_path / "link.pt"
    torch.save(1, path)
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()
    path.chmod(0o600)
    link.symlink_to("x.pt")
    torch.save(2, link)
    assert link.is_symlink() and torch.load(path) == 2
    assert path.stat().st_mode & 0o777 == 0o600
    os.mkfifo(tmp_path / "pipe")
    result = []
    reader = threading.Thread(target=lambda: result.append(torch.load(tmp_path / "pipe")))
    reader.start()
    torch.save(torch.arange(3), tmp_path / "pipe")
    reader.join()
    assert result[0].tolist() == [0, 1, 2]


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_map_location_on_the_host():
    x = torch.arange(4)
    seen = []

    def where(storage, location):
        seen.append((type(storage), location, storage.nbytes()))
        return storage

    for place in ("cpu", torch.device("cpu"), {"cuda:0": "cpu"}, {"cpu": "cpu"}, where):
        same(x, again(x, map_location=place))
        same(x, again(x, map_location=place, weights_only=False))
    assert seen == [(torch.UntypedStorage, "cpu", 32)] * 2
    same(x, again(x, map_location=lambda storage, location: None))
    meta = again({"x": x, "y": x[1:]}, map_location="meta")
    assert meta["y"].is_meta and meta["y"].shape == (3,)

    def fails(storage, location):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        again(x, map_location=fails)
    with pytest.raises(RuntimeError, match="storage of 8 bytes for one of 32"):
        again(x, map_location=lambda storage, location: torch.ones(2).untyped_storage())


def test_map_location_of_older_files():
    file = RECORDED / "shared.legacy"
    for place in ("cpu", lambda storage, location: storage, {"cpu": "cpu"}):
        for weights_only in (True, False):
            same(CASES["shared"], torch.load(file, place, weights_only=weights_only))


def elsewhere(value, place):
    """As if it had been saved on another device."""
    return rewritten(
        value,
        lambda name, content: (
            content.replace(
                b"X\x03\x00\x00\x00cpu", b"X" + len(place).to_bytes(4, "little") + place
            )
            if name == "data.pkl"
            else content
        ),
    )


def test_files_from_devices_that_are_not_here():
    data = elsewhere(torch.arange(3), b"cuda:7")
    for place in ("cpu", {"cuda:7": "cpu"}, lambda storage, location: storage):
        assert torch.load(io.BytesIO(data), map_location=place).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="CUDA|cuda"):
        torch.load(io.BytesIO(data))
    with pytest.raises(RuntimeError, match="tagged with xla:0"):
        torch.load(io.BytesIO(elsewhere(torch.arange(3), b"xla:0")))


def test_devices(accelerator, tmp_path):
    x = torch.arange(6.0, device=accelerator).reshape(2, 3)
    path = tmp_path / "x.pt"
    torch.save({"x": x, "y": x.t(), "p": nn.Parameter(x)}, path)
    made = torch.load(path)
    assert made["x"].device == x.device and made["y"].tolist() == x.t().tolist()
    made["x"].fill_(1)
    assert made["y"].sum().item() == 6.0 and made["p"].is_cuda
    host = torch.load(path, map_location="cpu", mmap=True)
    assert host["p"].device.type == "cpu" and host["x"].tolist() == x.tolist()
    torch.save(host, path)
    assert torch.load(path, map_location="cuda")["x"].is_cuda
    assert torch.load(path, map_location={"cpu": "cuda:0"})["x"].device.index == 0


def test_mmap_reads_late_and_writes_nothing_back(tmp_path):
    path = tmp_path / "x.pt"
    x = torch.arange(1 << 16, dtype=torch.float32)
    torch.save({"x": x, "y": x[5:]}, path)
    before = path.read_bytes()
    made = torch.load(path, mmap=True)
    made["x"].add_(1)
    assert made["y"][0].item() == 6.0 and path.read_bytes() == before
    path.unlink()  # what is mapped stays
    assert made["x"].sum().item() == (x + 1).sum().item()
    legacy = next(RECORDED.glob("*.legacy"))
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        torch.load(legacy, mmap=True)


def test_several_threads(tmp_path):
    values = [{"x": torch.full((1000,), float(i))} for i in range(8)]
    problems = []

    def work(i):
        for _ in range(5):
            torch.save(values[i], tmp_path / "one.pt")  # all to one file: any of them, whole
            got = torch.load(tmp_path / "one.pt")["x"]
            if got.numel() != 1000 or len(set(got.tolist())) != 1:
                problems.append(got)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems and [p.name for p in tmp_path.iterdir()] == ["one.pt"]


# ---- what a file may name ------------------------------------------------------------------------


def test_objects_have_to_be_allowed():
    value = Settings(0.5, ["a", torch.ones(2)])
    name = f"{__name__}.Settings"
    with pytest.raises(pickle.UnpicklingError, match=f"Weights only load failed.*{name}"):
        again(value)
    with torch.serialization.safe_globals([Settings]):
        made = again(value)
    assert made.rate == 0.5 and made.names[1].tolist() == [1.0, 1.0]
    with torch.serialization.safe_globals([(Settings, name)]):
        assert again(value).rate == 0.5
    with pytest.raises(pickle.UnpicklingError):
        again(value)
    assert again(value, weights_only=False).rate == 0.5
    slotted = Slotted()
    slotted.a = 3
    with torch.serialization.safe_globals([Slotted]):
        assert again([slotted])[0].a == 3
        with pytest.raises(pickle.UnpicklingError, match="Net"):  # the other is not
            again([slotted, Net()])


def test_dicts_with_a_factory():
    value = collections.defaultdict(list, {"a": [1], "b": [torch.ones(1)]})
    with torch.serialization.safe_globals([collections.defaultdict, list]):
        made = again(value)
    assert made["a"] == [1] and made["c"] == [] and type(made) is collections.defaultdict


def make_dangerous():
    return Dangerous()


class Dangerous:
    done = []

    def __setstate__(self, state):
        self.done.append(state)

    def append(self, item):
        self.done.append(item)

    __setitem__ = __setstate__


@pytest.mark.parametrize("change", [b"}b", b"K\x01a", b"(K\x01e", b"K\x01K\x01s", b"(K\x01K\x01u"])
def test_what_an_allowed_function_returns_is_not_changed(change):
    call = f"c{__name__}\nmake_dangerous\n)R".encode()
    data = hostile_files.saved(hostile_files.PROTO + call + change + hostile_files.STOP)
    with torch.serialization.safe_globals([make_dangerous]):
        with pytest.raises(pickle.UnpicklingError, match="of type Dangerous"):
            torch.load(io.BytesIO(data))
    assert Dangerous.done == []


def test_some_modules_can_never_be_allowed():
    data = hostile_files.saved(hostile_files.call("os", "getcwd"))
    for allowed in (os.getcwd, (os.getcwd, "os.getcwd")):
        with torch.serialization.safe_globals([allowed]):
            with pytest.raises(pickle.UnpicklingError, match="os.getcwd"):
                torch.load(io.BytesIO(data))
    for bad, error in (((1, 2, 3), ValueError), ((list, 3), TypeError)):
        with torch.serialization.safe_globals([bad]):
            with pytest.raises(error):
                torch.load(io.BytesIO(data))


def test_names_that_a_file_would_need(tmp_path):
    torch.save(Net(), tmp_path / "x.pt")
    found = torch.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x.pt")
    assert found == [f"{__name__}.Net", "torch.nn.modules.linear.Linear"]
    with torch.serialization.safe_globals([Net, nn.Linear]):
        assert torch.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x.pt") == []
        assert torch.load(tmp_path / "x.pt")(torch.ones(2)).shape == (3,)


def named(full):
    module, name = full.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


def test_numpy_in_a_checkpoint():
    numpy = pytest.importorskip("numpy")
    value = {"loss": numpy.float64(0.5), "table": numpy.arange(6).reshape(2, 3)}
    with pytest.raises(pickle.UnpicklingError, match="numpy"):
        again(value)
    data = io.BytesIO()
    torch.save(value, data)
    names = torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data.getvalue()))
    allowed = [(named(name), name) for name in names]
    with torch.serialization.safe_globals(allowed):
        made = torch.load(io.BytesIO(data.getvalue()))
    assert made["loss"] == 0.5 and made["table"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_environment_may_force_either(tmp_path):
    torch.save({1: Settings}, tmp_path / "x.pt")
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import tessera as torch; "
    )
    for setting, given, loads in (
        ("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "", True),
        ("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", ", weights_only=True", False),
        ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", ", weights_only=False", False),
    ):
        code = program + f"torch.load({str(tmp_path / 'x.pt')!r}{given})"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**ENV, setting: "1"},
            capture_output=True,
            text=True,
        )
        assert (done.returncode == 0) == loads, done.stderr
        assert loads or "Weights only load failed" in done.stderr


def test_import_torch_means_the_same_files(tmp_path):
    """A program that was started with `tessera run` writes and reads the same files."""
    program = tmp_path / "p.py"
    program.write_text(
        "import torch\n"
        "class Net(torch.nn.Linear): pass\n"
        "torch.save(Net(2, 2), 'net.pt')\n"
        "assert b'tessera' not in open('net.pt', 'rb').read()\n"
        "torch.save({'w': torch.ones(2)}, 'w.pt')\n"
        "assert type(torch.load('net.pt', weights_only=False)) is Net\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "tessera", "run", program],
        cwd=tmp_path,
        env=ENV,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert torch.load(tmp_path / "w.pt")["w"].tolist() == [1.0, 1.0]
