"""The pack of kernels that comes with the CUDA backend, on the emulated GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tessera as torch

PROGRAM = """
import sys
import tessera as torch
x = torch.arange(6, device="cuda", dtype=torch.float32).reshape(2, 3)
print(x.softmax(1).sum(0).tolist(), x.cumsum(1).tolist(), torch._C._compile_stats())
"""


@pytest.fixture(scope="module")
def tool(device):
    if "emulator" not in os.environ.get("LD_LIBRARY_PATH", "").split(":")[0]:
        pytest.skip("the emulated GPU is not in use")
    torch.ones(1, device=device)
    program = Path(torch._C._backend_file("cuda")).parent.parent / "bin" / "kernel_pack"
    if not program.exists():
        pytest.skip("kernel_pack is not built")
    return program


def run(folder, *command, **variables):
    env = {**os.environ, "TESSERA_FUSE": "0", "TESSERA_CACHE_DIR": str(folder / "cache")}
    env["TESSERA_COMPILE_LOG"] = str(folder / "log")
    (folder / "log").unlink(missing_ok=True)
    words = command or [sys.executable, "-c", PROGRAM]
    done = subprocess.run(words, env={**env, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if command:
        return done.stdout
    lines = (folder / "log").read_text().splitlines()
    return done.stdout.split("(")[0], sum(" compiled " in line for line in lines), len(lines)


@pytest.fixture(scope="module")
def packed(tool, tmp_path_factory):
    """A folder with a pack of the program's kernels, for sm_90 as the emulated GPU is."""
    folder = tmp_path_factory.mktemp("pack")
    texts = folder / "texts"
    texts.mkdir()
    answers, compiled, count = run(folder, TESSERA_KEEP_KERNELS=str(texts))
    assert compiled == count > 2
    names = [file.name for file in texts.iterdir()]
    assert any(name.startswith("softmax.quick.") for name in names)
    assert any(name.startswith("cumsum.full.") for name in names)
    said = run(folder, tool, folder / "a.pack", "--arch", "90", texts)
    assert f"{count} kernels" in said and "0 failed" in said
    assert f"{count} as before" in run(folder, tool, folder / "a.pack", "--arch", "90", texts)
    return folder, answers, count


def test_nothing_is_compiled(packed, tmp_path):
    folder, answers, count = packed
    # Without a compiler at all: the other libraries alone.
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for file in Path(os.environ["LD_LIBRARY_PATH"].split(":")[0]).iterdir():
        if "nvrtc" not in file.name:
            (libraries / file.name).symlink_to(file)
    pack = {"TESSERA_KERNEL_PACK": str(folder / "a.pack"), "LD_LIBRARY_PATH": str(libraries)}
    assert run(tmp_path, **pack) == (answers, 0, count)
    assert not (tmp_path / "cache").exists() or not any((tmp_path / "cache").iterdir())


def test_turned_off(packed, tmp_path):
    _, answers, count = packed
    assert run(tmp_path, TESSERA_KERNEL_PACK="0") == (answers, count, count)


@pytest.mark.parametrize("kind", ["cut", "damaged", "foreign", "other architecture", "absent"])
def test_a_pack_that_is_no_good_is_harmless(kind, packed, tool, tmp_path):
    folder, answers, count = packed
    data = bytearray((folder / "a.pack").read_bytes())
    pack = tmp_path / "b.pack"
    if kind == "cut":
        pack.write_bytes(data[: len(data) // 2])
    elif kind == "damaged":
        for at in range(200 + 48 * count, len(data), 64):  # in every image
            data[at] ^= 1
        pack.write_bytes(data)
    elif kind == "foreign":
        pack.write_bytes(b"\x7fELF" * 1000)
    elif kind == "other architecture":
        run(tmp_path, tool, pack, "--arch", "80", folder / "texts")
    assert run(tmp_path, TESSERA_KERNEL_PACK=str(pack)) == (answers, count, count)


def test_doctor_tells(packed):
    folder, _, count = packed
    doctor = (sys.executable, "-m", "tessera", "doctor", "--quick")
    said = run(folder, *doctor, TESSERA_KERNEL_PACK=str(folder / "a.pack"))
    assert f"{count} kernels for sm_90, CUDA 13.9" in said  # the emulated compiler's version
    said = run(folder, *doctor, TESSERA_KERNEL_PACK=str(folder / "no.pack"))
    assert "kernel pack:     none at" in said


def test_the_tour_meets_named_kernels(tool, tmp_path):
    """What ./dev pack runs: a part of it, whose stations must not have gone stale."""
    folder = Path(__file__).resolve().parents[2] / "tools" / "pack"
    texts = tmp_path / "texts"
    texts.mkdir()
    wanted = ("entropy", "making", "indexing", "joining", "transformers", "autoencoders", "looks")
    run(
        tmp_path,
        *(sys.executable, folder / "tour.py", "usual", *wanted),
        TESSERA_EMULATOR="1x128GiB,idle,nopoison",
        TESSERA_KEEP_KERNELS=str(texts),
    )
    kinds = {file.name.split(".")[0] for file in texts.iterdir()}
    for kind in ("rows_entropy", "random", "index_move", "cat_dense", "row_norm", "reduce"):
        assert kind in kinds
