"""The operators' part of the Python stubs, from the records' schema lines."""

import keyword

PY_TYPES = {
    "Tensor": "Tensor",
    "Tensor|Scalar": "Tensor | Number",
    "Scalar": "Number",
    "Number": "Number",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "int[]": "Sequence[int]",
    "int[1]": "int | Sequence[int]",
    "int...": "int | Sequence[int]",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor...": "Tensor | Sequence[Tensor]",
    "dtype": "dtype",
    "device": "device | str | int",
    "str": "str",
    "float[]": "Sequence[float]",
    "Tensor?[]": "Sequence[Tensor | None]",
    "memory_format": "memory_format",
    "layout": "layout",
    "Generator": "Generator",
}
PY_RESULTS = {
    "Tensor": "Tensor",
    "Tensor[]": "tuple[Tensor, ...]",
    "bool": "bool",
    "int": "int",
    "float": "float",
    "Scalar": "Number",
}
# Modules that import their operators' stubs, also while they have none.
MODULES = ("", "fft", "linalg", "nn.functional", "signal.windows", "special")
INPLACE, OUT, FUNCTION, METHOD = 4, 8, 1, 2
HEAD = """\
# Derived from the records; not to be edited.
from collections.abc import Sequence
from typing import overload

from tessera import Generator, Tensor, device, dtype, layout, memory_format

Number = bool | int | float | complex

"""


def _argument(arg, name):
    kind = PY_TYPES[arg.schema_type] + (" | None" if arg.optional else "")
    if arg.schema_type.endswith("..."):
        return f"*{name}: {kind}"
    default = arg.default.replace("inf", 'float("inf")') if arg.default else arg.default
    return f"{name}: {kind}" + (f" = {default}" if default is not None else "")


def signature(op, name, method=False, inplace=False):
    """`name(arguments) -> result` as a stub writes it."""
    words, star = ["self"] if method else [], False
    for at, arg in enumerate(op.args):
        if method and at == 0:
            continue
        if arg.keyword_only and not star:
            words.append("*")
            star = True
        # Functions call `input` what methods call `self`.
        known = "input" if arg.name == "self" else arg.name
        words.append(_argument(arg, known + "_" if keyword.iskeyword(known) else known))
        star |= arg.schema_type.endswith("...")
    result = PY_RESULTS.get(op.results, "tuple[Tensor, ...]")
    if inplace:
        result = "Tensor"
    elif op.forms & OUT:
        words += ([] if star else ["*"]) + ["out: Tensor | Sequence[Tensor] | None = None"]
    return f"{name}({', '.join(words)}) -> {result}"


class _Stub:
    """Functions of a module, or methods of a class, by name: several are overloads."""

    def __init__(self, indent=""):
        self._indent = indent
        self._found = {}

    def add(self, name, text, doc=""):
        entries = self._found.setdefault(name, [])
        if all(text != known for known, _ in entries):
            entries.append((text, doc))

    def text(self):
        lines = []
        for entries in self._found.values():
            for text, doc in entries:
                if len(entries) > 1:
                    lines.append(f"{self._indent}@overload")
                body = f'\n{self._indent}    """{doc}"""\n{self._indent}    ...' if doc else " ..."
                lines.append(f"{self._indent}def {text}:{body}")
        return "\n".join(lines) + "\n"


def stub_files(ops):
    """File names and texts: functions by module, and the Tensor class's operator methods."""
    modules, methods = {module: _Stub() for module in MODULES}, _Stub("    ")
    for op in ops:
        for path in (op.path, *op.also):
            module, _, name = path.rpartition(".")
            if name.startswith("_"):
                continue
            stub = modules.setdefault(module, _Stub())
            if op.forms & FUNCTION or module:
                stub.add(name, signature(op, name), op.doc)
            if module:
                continue
            on_tensor = op.args and op.args[0].kind == "Tensor"
            if op.forms & METHOD and on_tensor:
                methods.add(name, signature(op, name, method=True), op.doc)
            if op.forms & INPLACE and on_tensor:
                name += "_"
                stub.add(name, signature(op, name, inplace=True))
                if op.forms & METHOD:
                    methods.add(name, signature(op, name, method=True, inplace=True))
    files = {
        f"_{module.replace('.', '_')}_ops.pyi" if module else "_ops.pyi": HEAD + stub.text()
        for module, stub in modules.items()
    }
    files["_tensor_ops.pyi"] = HEAD + "class TensorOperators:\n" + methods.text()
    return files
