"""No library and no module is loaded from the current directory; what is built is hardened."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import KIND

import tessera as torch
from tessera import _cuda_libs

pytestmark = pytest.mark.skipif(KIND != "cpu", reason="the same on every device")
ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(torch.__file__).parent
BUILD = PACKAGE.parents[1]
CHECK = ROOT / "tools" / "check" / "elf.py"
ENV = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "TESSERA_CUDA_LIBS")}
ENV |= {"PYTHONPATH": str(PACKAGE.parent), "OMP_NUM_THREADS": "1"}
# Opens every library there is: BLAS, LAPACK, oneDNN, CUDA, the carriers of processes.
PROGRAM = """
import tessera as torch
torch.cuda.is_available()
a = torch.rand(64, 64)
torch.linalg.svd(a @ a)
torch.conv2d(torch.rand(1, 8, 32, 32), torch.rand(8, 8, 3, 3))
for name in ("gloo", "mpi", "nccl"):
    torch._C._dist_has_backend(name)
"""


def run(*command, **options):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=100, **options
    )
    return done.returncode, done.stdout + done.stderr


def test_the_loader_looks_in_no_relative_folder(tmp_path):
    log = tmp_path / "log"
    env = ENV | {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(log)}
    status, text = run(sys.executable, "-c", PROGRAM, cwd=tmp_path, env=env)
    assert status == 0, text
    lines = [line for file in tmp_path.glob("log.*") for line in file.read_text().splitlines()]
    tried = [line.split("trying file=")[1] for line in lines if "trying file=" in line]
    if not tried:
        pytest.skip("this loader does not tell")
    assert len(tried) > 10
    assert [file for file in tried if not file.startswith("/")] == []


@pytest.mark.parametrize("variable", ["TESSERA_BLAS", "TESSERA_LAPACK", "TESSERA_BACKEND_DIR"])
def test_relative_paths_of_the_environment(variable, tmp_path):
    """A copy of a library of ours in the current directory is not mapped."""
    copy = tmp_path / ("libtessera_cpu.so" if variable.endswith("DIR") else "libother.so")
    shutil.copy(PACKAGE / "lib" / "libtessera_cpu.so", copy)
    value = "." if variable.endswith("DIR") else f"./{copy.name}"
    program = PROGRAM + f"print('mapped', {str(tmp_path)!r} in open('/proc/self/maps').read())"
    command = (sys.executable, "-c", program)
    status, text = run(*command, cwd=tmp_path, env=ENV | {variable: value})
    assert status == 0 and "mapped False" in text, text


def test_relative_folders_of_cuda(tmp_path, monkeypatch):
    lib = tmp_path / "nvidia" / "cu13" / "lib"
    lib.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for entry in ("", ".", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [entry])
        assert _cuda_libs.folders() == []
    monkeypatch.setenv("TESSERA_CUDA_LIBS", f"here::/there:{lib}")
    monkeypatch.setenv("CUDA_HOME", "cuda")
    path = _cuda_libs.search_path()
    assert "/there" in path and str(lib) in path
    assert all(os.path.isabs(folder) for folder in path)


def test_processes_of_a_job_import_nothing_from_here(tmp_path):
    here, program = tmp_path / "here", tmp_path / "there" / "program.py"
    here.mkdir()
    program.parent.mkdir()
    program.write_text(
        "import os, sys, torch, helper\n"
        "sys.stdout.write(f'rank {os.environ[\"RANK\"]} {helper.name}\\n')\n"
    )
    (program.parent / "helper.py").write_text("name = 'right'\n")
    for name in ("tessera", "torch", "random", "json", "dataclasses", "helper"):
        (here / f"{name}.py").write_text("raise SystemExit('a file of the current directory')\n")
    launch = PACKAGE / "_launch"
    command = (sys.executable, launch, "run", "--nproc", "2", program)
    status, text = run(*command, cwd=here, env=ENV)
    assert status == 0 and "rank 0 right" in text and "rank 1 right" in text, text


def changed(file, target):
    """A copy with another first letter in its search path."""
    data = file.read_bytes()
    at = data.index(b"\0$ORIGIN") + 1
    target.write_bytes(data[:at] + b":" + data[at + 1 :])
    return target


def test_the_check_finds_bad_search_paths(tmp_path):
    good = PACKAGE / "lib" / "libtessera_gloo.so"
    if not good.exists():
        good = PACKAGE / "lib" / "libtessera_virtual.so"
    assert run(sys.executable, CHECK, good)[0] == 0
    bad = changed(good, tmp_path / good.name)
    status, text = run(sys.executable, CHECK, bad)
    assert status == 1 and "elements that are empty" in text and "that are relative" in text
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.write(bad, "tessera/lib/" + good.name)
    status, text = run(sys.executable, CHECK, wheel)
    assert status == 1 and f"some.whl/tessera/lib/{good.name}" in text
    assert run(sys.executable, CHECK, tmp_path / "missing")[0] != 0


def test_what_is_built():
    if not (BUILD / "CMakeCache.txt").exists():
        pytest.skip("not run from a build tree")
    status, text = run(sys.executable, CHECK, BUILD)
    assert status == 0, text


@pytest.mark.parametrize("component", ["sdk", "python"])
def test_what_is_installed(component, tmp_path):
    """The SDK's tree; and the wheel's, which holds the same files as the component."""
    if not (BUILD / "CMakeCache.txt").exists() or not shutil.which("cmake"):
        pytest.skip("not run from a build tree")
    parts = ("--component", "python") if component == "python" else ()
    status, text = run("cmake", "--install", BUILD, "--prefix", tmp_path, *parts)
    assert status == 0, text
    status, text = run(sys.executable, CHECK, tmp_path)
    assert status == 0, text
    assert list(tmp_path.rglob("libtessera_cpu.so"))
