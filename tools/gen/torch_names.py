#!/usr/bin/env python3
"""Adds the public names of an installed PyTorch to the lists of python/tessera/_names.

python-with-torch tools/gen/torch_names.py

Run it with an interpreter that has PyTorch. Names only ever join: those of several versions stand
side by side, and what was added by hand stays.
"""

import importlib
import pathlib
import pkgutil
import sys
import types
import warnings

LISTS = pathlib.Path(__file__).resolve().parents[2] / "python" / "tessera" / "_names"
sys.path.insert(0, str(LISTS.parent))
from _names import read_list  # noqa: E402

# No part of what programs are written with.
_LEAKED = {"Any", "Callable", "Set", "Type", "Union", "TYPE_CHECKING", "attr", "name", "obj"}
_LEAKED |= {"candidate", "cpp"}
_SKIPPED = (
    "torch.lib",
    "torch.include",
    "torch.bin",
    "torch.share",
    "torch.test",
    "torch.contrib",
    "torch.utils.benchmark.examples",
    "torch.utils.benchmark.op_fuzzers",
    "torch.utils.hipify",
)
# Packages whose insides are named, but whose contents are not listed one by one.
_OPEN = (
    "torch.ao.",
    "torch.quantization.",
    "torch.nn.quantized.",
    "torch.nn.quantizable",
    "torch.nn.qat",
    "torch.nn.intrinsic",
    "torch.fx.",
    "torch.onnx.",
    "torch.jit.",
    "torch.distributed.",
    "torch.package.",
    "torch.utils.data.datapipes.",
    "torch.utils.tensorboard.",
    "torch.utils.benchmark.utils.",
    "torch.utils.model_dump",
    "torch.utils.cpp_extension",
    "torch.utils.collect_env",
    "torch.multiprocessing.",
    "torch.backends._",
)


def modules():
    """Every public module that can be imported, and the names of those that cannot."""
    import torch

    yield "torch", torch
    packages = [torch]
    for package in packages:
        for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            name = found.name
            if name.startswith(_SKIPPED) or any(p.startswith("_") for p in name.split(".")):
                continue
            try:
                module = importlib.import_module(name)
            except Exception:
                yield name, None
                continue
            yield name, module
            if found.ispkg:
                packages.append(module)


def public_names(module):
    """What a program may expect in a module: no imports of other libraries, no private names."""
    names = set(getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        if name.startswith("_") or name in _LEAKED:
            continue
        if isinstance(value, types.ModuleType):
            if value.__name__ == f"{module.__name__}.{name}":
                names.add(name)
        elif isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            home = getattr(value, "__module__", None) or ""
            if home.startswith("torch") or module.__name__ == "torch":
                names.add(name)
        elif module.__name__ in ("torch", "torch.version") or name.isupper():
            names.add(name)
        elif module.__name__.startswith("torch.backends"):
            names.add(name)
    return names


def write(path, names):
    lines = [line for line in path.read_text().splitlines() if line.startswith("#")]
    for owner in sorted(names):
        line = owner + ":"
        for name in sorted(names[owner]):
            if len(line) + 1 + len(name) > 100:
                lines.append(line)
                line = " "
            line += " " + name
        lines.append(line)
    path.write_text("\n".join(lines) + "\n")


def grow(list_name, add):
    path = LISTS / list_name
    names = {owner: set(found) for owner, found in read_list(path).items()}
    add(names)
    write(path, names)


def add_modules(names):
    for name, module in modules():
        if name in names["*"] or module is None or name.startswith(_OPEN):
            names["*"].add(name)
        else:
            names.setdefault(name, set()).update(public_names(module))


def add_tensor(names):
    import torch

    names["torch.Tensor"].update(n for n in dir(torch.Tensor) if not n.startswith("_"))


def main():
    warnings.simplefilter("ignore")
    grow("modules.txt", add_modules)
    grow("tensor.txt", add_tensor)


if __name__ == "__main__":
    main()
