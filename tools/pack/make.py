"""Makes the pack of kernels that comes with the CUDA backend (backends/cuda/pack.h): `./dev pack`.

    python3 tools/pack/make.py BUILD [--arch 90]... [--out FILE] [--texts FOLDER] [--jobs N]

Has tour.py run on the emulated GPU of a build folder, and the texts it met compiled by NVRTC, which
must be there; no GPU need be. The pack is BUILD/lib/tessera_cuda.pack unless told.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Deferral makes groups and gives kernels company, of which there is no end: those texts are left
# out. Run one by one, a group is a single operator.
ONE_BY_ONE = {"TESSERA_FUSE": "0", "TESSERA_INTERPRET": "0"}
DEFERRED = {"TESSERA_FUSE": "1", "TESSERA_INTERPRET": "0"}
INTERPRETED = {"TESSERA_FUSE": "1", "TESSERA_INTERPRET": "always"}
# Where cuDNN is not installed, these have kernels of our own.
WITHOUT_CUDNN = {**ONE_BY_ONE, "TESSERA_CUDNN": "0"}
CONVOLVING = "usual convolutions networks residual_networks autoencoders recurrent_networks"
IDLE, COMPUTES = "1x128GiB,idle,nopoison", "1x4GiB"


def kind(file):
    return file.name.split(".")[0]


def everything(file):
    return True


def named(file):
    return kind(file) != "group" and not kind(file).endswith("+joined")


def rare(file):
    """Of operators in all dtypes and forms: reductions have one kernel for all forms of a dtype,
    and groups are interpreted unless they are of complex numbers."""
    if kind(file) == "group":
        return "Complex<" in file.read_text()
    return named(file) and kind(file) != "reduce"


# The tour's part (and stations of it), how, on what, and which texts are kept.
PASSES = (
    ("usual", ONE_BY_ONE, IDLE, everything),
    ("values", ONE_BY_ONE, COMPUTES, everything),
    ("usual", DEFERRED, IDLE, named),
    ("usual", INTERPRETED, IDLE, named),
    ("values", INTERPRETED, COMPUTES, named),
    ("records", ONE_BY_ONE, IDLE, rare),
    ("records", INTERPRETED, IDLE, rare),
    (CONVOLVING, WITHOUT_CUDNN, IDLE, everything),
)


def environment(build, folder, emulator, **more):
    old = os.environ.get("LD_LIBRARY_PATH")
    return {
        **os.environ,
        "PYTHONPATH": f"{build / 'python'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "LD_LIBRARY_PATH": str(build / "emulator") + (f":{old}" if old else ""),
        "TESSERA_EMULATOR": emulator,
        "TESSERA_CACHE_DIR": str(build / "pack-cache"),
        "TESSERA_KEEP_KERNELS": str(folder),
        "TESSERA_KERNEL_BUDGET": "1000000000",
        "TESSERA_KERNEL_PACK": "0",
        **more,
    }


def with_wheels(build):
    """The environment, with the folders where pip may have put NVRTC."""
    env = {**os.environ, "PYTHONPATH": environment(build, "", "")["PYTHONPATH"]}
    program = "import os, tessera; print(os.environ.get('TESSERA_CUDA_LIBS', ''))"
    found = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    return {**os.environ, "TESSERA_CUDA_LIBS": found.stdout.strip()}


def gather(build, texts):
    """Leaves the texts of all passes in `texts`; false where a station failed."""
    good = True
    began = time.monotonic()
    for part, variables, emulator, wanted in PASSES:
        with tempfile.TemporaryDirectory() as folder:
            env = environment(build, folder, emulator, **variables)
            words = [sys.executable, HERE / "tour.py", *part.split()]
            run = subprocess.run(words, env=env, stdout=subprocess.DEVNULL)
            if run.returncode:
                print(f"the tour ({part}, {variables}) failed in part", flush=True)
                good = False
            for file in Path(folder).glob("*.cu"):
                if wanted(file):
                    shutil.move(file, texts / file.name)
    count = sum(1 for _ in texts.glob("*.cu"))
    print(f"{count} texts in {time.monotonic() - began:.1f} s", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--arch", action="append", default=[])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--texts", type=Path, help="a folder for the texts, kept")
    parser.add_argument("--jobs", default=str(os.cpu_count() or 1))
    options = parser.parse_args()
    build = options.build.resolve()
    tool = build / "bin" / "kernel_pack"
    for needed in (tool, build / "emulator" / "libcuda.so.1"):
        if not needed.exists():
            print(
                f"no pack: {needed} is not there (built with TESSERA_TESTS=ON, with CUDA's headers)"
            )
            return 1
    env = with_wheels(build)
    with tempfile.TemporaryDirectory() as folder:
        texts = options.texts or Path(folder) / "texts"
        texts.mkdir(parents=True, exist_ok=True)
        # Is there a compiler at all? An empty pack tells, before anything else is done.
        (Path(folder) / "none").mkdir()
        trial = [tool, Path(folder) / "trial.pack", Path(folder) / "none"]
        if subprocess.run(trial, env=env, stdout=subprocess.DEVNULL).returncode:
            return 1
        good = gather(build, texts)
        out = options.out or build / "lib" / "tessera_cuda.pack"
        words = [tool, out, "--jobs", options.jobs, texts]
        for arch in options.arch:
            words += ["--arch", arch]
        made = subprocess.run(words, env=env).returncode == 0
    return 0 if good and made else 1


if __name__ == "__main__":
    sys.exit(main())
