"""CUDA's libraries that pip installed: the CUDA backend looks for them where this says."""

import os
import sys


def folders():
    """`lib` folders of NVIDIA's wheels, in the order of sys.path."""
    found = []
    for entry in sys.path:
        root = os.path.join(entry, "nvidia")
        try:
            names = sorted(os.listdir(root))
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
