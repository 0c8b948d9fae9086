"""`tessera doctor`: what was found on this machine, what was not, and why."""

import os
import platform
import sys


def _cache_folder():
    """The folder of compiled kernels, as the CUDA backend chooses it."""
    if os.environ.get("TESSERA_CACHE_DIR"):
        return os.environ["TESSERA_CACHE_DIR"]
    if os.path.isabs(os.environ.get("XDG_CACHE_HOME", "")):
        return os.path.join(os.environ["XDG_CACHE_HOME"], "tessera")
    return os.path.join(os.path.expanduser("~"), ".cache", "tessera")


def _size(folder):
    count = total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(parent, name))
                count += 1
            except OSError:
                pass  # another process's, and gone by now
    return f"{count} files, {total / 2**20:.1f} MiB" if count else "empty"


def _gib(size):
    return f"{size / 2**30:.1f} GiB"


def _accelerator(torch):
    _C = torch._C
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        yield "visible devices", f"CUDA_VISIBLE_DEVICES={visible!r}"
    if not torch.cuda.is_available():
        yield "accelerator", "none: " + _C._cuda_why_unavailable()
        yield "", "TESSERA_VIRTUAL_GPU=1x2GiB makes one of host memory"
        return
    is_virtual = torch.cuda.get_device_properties(0).is_virtual
    name = "virtual" if is_virtual else "cuda"
    yield "accelerator", f"{name}, {_C._backend_file(name)}"
    for index in range(torch.cuda.device_count()):
        p = torch.cuda.get_device_properties(index)
        kind = "host memory" if p.is_virtual else f"compute capability {p.major}.{p.minor}"
        free, total = torch.cuda.mem_get_info(index)
        yield f"cuda:{index}", f"{p.name}, {kind}, {_gib(free)} free of {_gib(total)}"
        if not p.is_virtual:
            yield from _architecture(p.major, p.minor)
    for line in _C._about_backend(name).splitlines():
        yield tuple(line.split(": ", 1))


def _architecture(major, minor):
    """Is the device too old for the compiler that would be used?"""
    from . import _cuda_libs

    compiler = _cuda_libs.locate(("libnvrtc.so.13", "libnvrtc.so.12")) or ""
    if (major, minor) < (7, 5) and compiler.endswith(".13"):
        yield "", f'{compiler} does not compile for it: pip install "tessera[cuda12]"'


def _libraries():
    from . import _cuda_libs

    folders = os.environ.get("TESSERA_CUDA_LIBS")
    yield "CUDA libraries", folders or "no folders beyond the usual (TESSERA_CUDA_LIBS)"
    missing = False
    for name, found in _cuda_libs.report():
        missing |= "pip install" in found
        yield f"  {name}", found
    if missing:
        yield "", 'all of them: pip install "tessera[cuda]" (cuda12 for GPUs before compute 7.5)'


def _driver():
    """NVIDIA's driver and its GPUs, by NVML: also where CUDA cannot use them."""
    from . import _C

    gpus, driver = _C._gpus("cuda")
    if not gpus:
        yield "NVIDIA driver", f"none: {driver['why']}"
        yield (
            "",
            "an NVIDIA GPU needs its driver: the distribution's package, or nvidia.com/drivers",
        )
        return
    yield "NVIDIA driver", f"{driver['driver']}, for CUDA up to {driver['cuda']}"
    for index, gpu in enumerate(gpus):
        used = f"{_gib(gpu['memory_used'])} used of {_gib(gpu['memory_total'])}"
        others = len(gpu["processes"])
        busy = f", {others} process{'es' if others != 1 else ''} on it" if others else ""
        yield f"  GPU {index}", f"{gpu['name']}, {gpu['bus']}, {used}{busy}"


def _measured(torch):
    """A tenth of a second each: what copies, products and transfers reach here."""
    from .utils.benchmark import quick

    yield "measured", "medians of short runs; `tessera bench` measures with care"
    for name, line in quick.lines():
        yield f"  {name}" if name else "", line


# How to get what torch.distributed lacks.
_CARRIERS = {
    "gloo": "apt-get install libgloo-dev, then build Tessera again",
    "mpi": "apt-get install libopenmpi-dev openmpi-bin, then build Tessera again",
    "nccl": "a GPU, and pip install nvidia-nccl-cu13",
}


def _processes(torch):
    """What carries data between processes."""
    found = {name: torch._C._dist_has_backend(name) for name in _CARRIERS}
    here = [name for name, (there, _) in found.items() if there]
    yield "processes", ", ".join(here) or "by none of gloo, mpi and nccl"
    for name, (there, why) in found.items():
        if not there:
            yield f"  {name}", f"{why}: {_CARRIERS[name]}"


def report(measure=True):
    """Pairs of a name and what was found."""
    import tessera as torch

    yield "tessera", f"{torch.__version__}, {os.path.dirname(torch.__file__)}"
    yield "python", f"{platform.python_version()}, {sys.executable}"
    yield "system", f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}"
    try:
        import numpy

        yield "numpy", numpy.__version__
    except ImportError:
        yield "numpy", "not installed; only programs that use it need it"
    yield "cpu backend", torch._C._backend_file("cpu")
    for line in torch._C._about_backend("cpu").splitlines():
        yield tuple(line.split(": ", 1))
    yield from _driver()
    yield from _accelerator(torch)
    yield "virtual GPU", os.environ.get("TESSERA_VIRTUAL_GPU") or "off (TESSERA_VIRTUAL_GPU)"
    yield from _libraries()
    yield from _processes(torch)
    yield "deferral", f"{torch.fuse.mode()} (TESSERA_FUSE=0, 1 or check)"
    cache = _cache_folder()
    yield "kernel cache", f"{cache}, {_size(cache)}"
    if measure:
        yield from _measured(torch)


def main(args=()):
    for name, found in report(measure="--quick" not in args):
        print(f"{name + ':' if name else '':<17}{found}", flush=True)
    return 0
