"""CUDA's libraries that pip installed: the CUDA backend looks for them where this says. And, for
`tessera doctor`, where each library would be found."""

import os
import sys

# What a library is called here, the names its file may have, what it is for, and the package of
# pip's that has it (for CUDA 13, for CUDA 12); None: it comes with NVIDIA's driver.
LIBRARIES = (
    ("driver", ("libcuda.so.1",), "everything", None),
    ("NVML", ("libnvidia-ml.so.1",), "utilisation, temperature, power", None),
    (
        "NVRTC",
        ("libnvrtc.so.13", "libnvrtc.so.12"),
        "compiles kernels",
        ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"),
    ),
    (
        "cuBLASLt",
        ("libcublasLt.so.13", "libcublasLt.so.12"),
        "matrix products",
        ("nvidia-cublas", "nvidia-cublas-cu12"),
    ),
    (
        "cuDNN",
        ("libcudnn.so.9",),
        "convolutions, attention",
        ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"),
    ),
    (
        "cuFFT",
        ("libcufft.so.12", "libcufft.so.11"),
        "Fourier transforms",
        ("nvidia-cufft", "nvidia-cufft-cu12"),
    ),
    (
        "cuSOLVER",
        ("libcusolver.so.12", "libcusolver.so.11"),
        "factorisations",
        ("nvidia-cusolver", "nvidia-cusolver-cu12"),
    ),
    ("NCCL", ("libnccl.so.2",), "several devices", ("nvidia-nccl-cu13", "nvidia-nccl-cu12")),
)
_SYSTEM = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/lib/wsl/lib",
)


def _current_folder():
    try:
        return os.path.realpath(os.getcwd())
    except OSError:
        return None  # it was removed


def folders():
    """`lib` folders of NVIDIA's wheels, in the order of sys.path.

    The current directory is left out: sys.path begins with it under `python -c`, `python -m` and
    the prompt, and libraries in it would be loaded.
    """
    found = []
    here = _current_folder()
    for entry in sys.path:
        if not os.path.isabs(entry) or os.path.realpath(entry) == here:
            continue
        root = os.path.join(entry, "nvidia")
        try:
            names = sorted(os.listdir(root), key=lambda name: (name != "cu13", name))
        except OSError:
            continue
        for name in names:
            lib = os.path.join(root, name, "lib")
            if os.path.isdir(lib):
                found.append(lib)
    return found


def _listed(variable):
    """The absolute folders of an environment variable; the backend ignores others."""
    return [f for f in os.environ.get(variable, "").split(os.pathsep) if os.path.isabs(f)]


def find():
    """Adds them to TESSERA_CUDA_LIBS, after what the user put there."""
    known = _listed("TESSERA_CUDA_LIBS")
    fresh = [folder for folder in folders() if folder not in known]
    if fresh:
        os.environ["TESSERA_CUDA_LIBS"] = os.pathsep.join(known + fresh)


def search_path():
    """The folders that the CUDA backend looks in, in its order: the system's loader comes first."""
    path = [*_listed("LD_LIBRARY_PATH"), *_SYSTEM]
    for name in ("CUDA_HOME", "CUDA_PATH"):
        for root in _listed(name):
            path += [os.path.join(root, "lib64"), os.path.join(root, "lib")]
    path.append("/usr/local/cuda/lib64")
    path += _listed("TESSERA_CUDA_LIBS")
    return list(dict.fromkeys(path))


def locate(names):
    """The file that a library would be loaded from, or None."""
    for name in names:
        for folder in search_path():
            file = os.path.join(folder, name)
            if os.path.exists(file):
                return file
    return None


def report():
    """Pairs of a library's name and where it is, or how to get it."""
    for name, files, purpose, packages in LIBRARIES:
        file = locate(files)
        if file is not None:
            yield name, file
        elif packages is None:
            yield name, f"{files[0]} was not found ({purpose}): it comes with NVIDIA's driver"
        else:
            yield name, f"{files[0]} was not found ({purpose}): pip install {packages[0]}"
