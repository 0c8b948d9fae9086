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


def folders():
    """`lib` folders of NVIDIA's wheels, in the order of sys.path."""
    found = []
    for entry in sys.path:
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


def find():
    """Adds them to TESSERA_CUDA_LIBS, after what the user put there."""
    known = [f for f in os.environ.get("TESSERA_CUDA_LIBS", "").split(os.pathsep) if f]
    fresh = [folder for folder in folders() if folder not in known]
    if fresh:
        os.environ["TESSERA_CUDA_LIBS"] = os.pathsep.join(known + fresh)


def search_path():
    """The folders that the CUDA backend looks in, in its order: the system's loader comes first."""
    listed = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    path = [*listed, *_SYSTEM]
    for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")):
        if root:
            path += [os.path.join(root, "lib64"), os.path.join(root, "lib")]
    path.append("/usr/local/cuda/lib64")
    path += os.environ.get("TESSERA_CUDA_LIBS", "").split(os.pathsep)
    return list(dict.fromkeys(folder for folder in path if folder))


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
