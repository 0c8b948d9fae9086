"""Takes a build to a GPU machine whose time is short: there only the Python binder is compiled.

    ./dev python tools/gpu/carry.py make [BUILD]   after ./dev build --tests (and ./dev pack)
    python3 tools/gpu/carry.py open                there, in a copy of the checkout with build/gpu

`make` leaves in build/gpu the libraries, the random programs, the pack of kernels (compressed),
generated headers, nanobind, and how the binder is compiled, read from BUILD (build/release unless
told). `open` compiles the binder for the Python that runs it, and lays build/gpu out as
`build_and_test.sh --build` does, so that the other parts of that script go on from there. The other
machine needs the same sources, c++, that Python's headers, and a C library that is as new.
"""

import json
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CARRIED = ROOT / "build" / "gpu"
LIBRARIES = ("tessera", "tessera_cpu", "tessera_cuda", "tessera_virtual")
PROGRAMS = ("fuse_random", "stream_canaries")
PACK = "lib/tessera_cuda.pack"
NANOBIND_OBJECTS = "@NANOBIND_OBJECTS@"


def words_of(command):
    """A command as words, without a compiler cache before it, and the compiler by its name."""
    words = shlex.split(command)
    if Path(words[0]).name == "ccache":
        words = words[1:]
    # A precompiled header only fits the compiler that made it; the sources include what they need.
    while "-include" in words:
        at = words.index("-include")
        del words[at : at + 2]
    return [Path(words[0]).name, *(word for word in words[1:] if word != "-Winvalid-pch")]


def binder_commands(build):
    """How the binder is compiled and linked; what another machine has elsewhere is between @."""
    import nanobind

    places = {
        str(Path(nanobind.__file__).parent): "@BUILD@/nanobind",
        str(build): "@BUILD@",
        sysconfig.get_paths()["include"]: "@INCLUDE@",
        str(ROOT): "@ROOT@",
        sysconfig.get_config_var("EXT_SUFFIX"): "@SUFFIX@",
    }

    def elsewhere(word):
        for place, name in places.items():
            word = word.replace(place, name)
        return word

    compiled = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        header = entry["file"].endswith((".hxx", ".hxx.cxx"))
        if "python/CMakeFiles/" in entry["command"] and not header:
            compiled.append([elsewhere(word) for word in words_of(entry["command"])])
    module = f"python/tessera/_C{sysconfig.get_config_var('EXT_SUFFIX')}"
    steps = subprocess.check_output(["ninja", "-t", "commands", module], cwd=build, text=True)
    # Between two empty commands, and written for a shell.
    link = steps.splitlines()[-1].removeprefix(": && ").removesuffix(" && :").replace("\\$", "$")
    linked = [
        NANOBIND_OBJECTS if Path(word).name.startswith("libnanobind") else elsewhere(word)
        for word in words_of(link)
    ]
    return {"compile": compiled, "link": linked}


def make(build):
    import nanobind

    build = build.resolve()
    shutil.rmtree(CARRIED, ignore_errors=True)
    for folder in ("lib", "bin"):
        (CARRIED / folder).mkdir(parents=True)
    for name in LIBRARIES:
        library = build / "lib" / f"lib{name}.so"
        if library.exists():
            subprocess.run(["strip", "-o", CARRIED / "lib" / library.name, library], check=True)
    for name in PROGRAMS:
        if (build / "bin" / name).exists():
            shutil.copy2(build / "bin" / name, CARRIED / "bin")
    if (build / PACK).exists():
        (CARRIED / f"{PACK}.xz").write_bytes(lzma.compress((build / PACK).read_bytes()))
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(build / "gen", CARRIED / "gen", ignore=ignored)
    shutil.copytree(Path(nanobind.__file__).parent, CARRIED / "nanobind", ignore=ignored)
    (CARRIED / "binder.json").write_text(json.dumps(binder_commands(build)))
    size = sum(file.stat().st_size for file in CARRIED.rglob("*") if file.is_file())
    print(f"{CARRIED}: {size / 1e6:.1f} MB")


def compile_binder():
    commands = json.loads((CARRIED / "binder.json").read_text())
    here = {
        "@BUILD@": str(CARRIED),
        "@INCLUDE@": sysconfig.get_paths()["include"],
        "@ROOT@": str(ROOT),
        "@SUFFIX@": sysconfig.get_config_var("EXT_SUFFIX"),
    }

    def run(words):
        for name, place in here.items():
            words = [word.replace(name, place) for word in words]
        output = CARRIED / words[words.index("-o") + 1]
        output.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(words, cwd=CARRIED, check=True)
        return str(output)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(run, commands["compile"]))
    nanobind = [name for name in objects if "/nanobind-static" in name]
    at = commands["link"].index(NANOBIND_OBJECTS)
    run(commands["link"][:at] + nanobind + commands["link"][at + 1 :])


def open_here():
    package = CARRIED / "python" / "tessera"
    shutil.rmtree(CARRIED / "python", ignore_errors=True)
    package.mkdir(parents=True)
    packed = CARRIED / f"{PACK}.xz"
    if packed.exists():
        (CARRIED / PACK).write_bytes(lzma.decompress(packed.read_bytes()))
    compile_binder()
    for folder in (ROOT / "python" / "tessera", CARRIED / "gen" / "python" / "tessera"):
        for entry in folder.glob("*"):
            if entry.name != "__pycache__":
                (package / entry.name).symlink_to(entry)
    (package / "lib").symlink_to(CARRIED / "lib")  # where the binder looks for the core
    print(f"PYTHONPATH={CARRIED / 'python'}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make"]:
            make(ROOT / "build" / "release")
        case ["make", build]:
            make(Path(build))
        case ["open"]:
            open_here()
        case _:
            sys.exit(__doc__)
