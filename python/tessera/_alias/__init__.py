"""Makes `import torch` mean Tessera.

In this process by an alias in sys.modules and a finder for `torch.x`; in child processes by the
folder beside this file, whose `torch` package does the same when it is imported.
"""

import importlib
import importlib.machinery
import os
import sys


class _Loader:
    """Hands out a module that is there already, and leaves its own spec on it."""

    def __init__(self, module):
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        module.__spec__ = self._spec

    def get_code(self, name):
        """For `-m torch.x`: the real module's code."""
        return self._spec.loader.get_code(self._spec.name)


class _Finder:
    """Finds torch.x.y where tessera.x.y is."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("torch."):
            return None
        real = "tessera" + name[len("torch") :]
        try:
            module = importlib.import_module(real)
        except ModuleNotFoundError as error:
            if error.name != real:
                raise
            raise ModuleNotFoundError(f"No module named '{name}'", name=name) from None
        return importlib.machinery.ModuleSpec(
            name, _Loader(module), is_package=hasattr(module, "__path__")
        )


class _Safetensors:
    """Programs that read safetensors files find ours where the package is not installed."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in ("safetensors", "safetensors.torch"):
            return None
        return importlib.machinery.ModuleSpec(name, cls, is_package=name == "safetensors")

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        ours = importlib.import_module("tessera.utils.safetensors")
        for name in "save save_file save_model load load_file load_model safe_open".split():
            setattr(module, name, getattr(ours, name))


def install():
    """Replaces torch in this process."""
    sys.modules["torch"] = sys.modules["tessera"]
    if not any(isinstance(f, type) and f is _Finder for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder)
        sys.meta_path.append(_Safetensors)  # last: an installed package comes first


def install_for_children():
    """Puts the torch package beside this file first in the path of child processes.

    Those that multiprocessing spawns are given this process's sys.path instead.
    """
    folder = os.path.dirname(os.path.abspath(__file__))
    package_parent = os.path.dirname(os.path.dirname(folder))
    paths = [folder, package_parent]
    for path in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        if path and path not in paths:
            paths.append(path)
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    if folder not in sys.path:
        sys.path.insert(1, folder)
