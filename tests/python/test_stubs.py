"""The stubs name everything that the package and its tensors have, and nothing else."""

import ast
import importlib
from pathlib import Path

import pytest

import tessera as torch
from tessera._missing import present_in
from tessera._standin import StandInLoader

FOLDER = Path(torch.__file__).parent


def parse(name):
    return ast.parse((FOLDER / name).read_text())


def defined(body):
    """The names that statements of a stub define; of what is imported with * those of the file."""
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    found = defined(parse(node.module + ".pyi").body)
                    names |= found - {"Sequence", "overload", "Number"}
                elif alias.asname or node.module is None:
                    names.add(alias.asname or alias.name)
    return {name for name in names if not name.startswith("_")}


def class_members(tree, name):
    (found,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    return defined(found.body)


def modules():
    """The public modules of the package, imported or not."""
    found = {p.name for p in FOLDER.iterdir() if (p / "__init__.py").exists()}
    found |= {p.stem for p in FOLDER.glob("*.py")}
    return {name for name in found if not name.startswith("_")}


def is_stand_in(name):
    """A module that another test imported, and that Tessera lacks."""
    return isinstance(getattr(getattr(torch, name), "__loader__", None), StandInLoader)


def test_every_name_of_the_package_is_in_the_stub():
    stub = defined(parse("__init__.pyi").body)
    public = {n for n in dir(torch) if not n.startswith("_") and not is_stand_in(n)}
    machinery = {"install_finders", "mark_missing_attributes", "module_getattr"}
    assert sorted((public | modules()) - machinery - stub) == []


def test_every_name_of_the_stub_is_in_the_package():
    stub = defined(parse("__init__.pyi").body)
    assert sorted(name for name in stub if not hasattr(torch, name)) == []


def test_every_attribute_of_tensors_is_in_the_stub():
    stub = class_members(parse("__init__.pyi"), "Tensor")
    stub |= class_members(parse("_tensor_ops.pyi"), "TensorOperators")
    present = {name for name in present_in(torch.Tensor) if not name.startswith("_")}
    assert sorted(present - stub) == []
    assert sorted(stub - present) == []


@pytest.mark.parametrize("file", sorted(p.name for p in FOLDER.glob("_*_ops.pyi")))
def test_functions_of_modules(file):
    if file == "_tensor_ops.pyi":
        return
    module = file.removeprefix("_").removesuffix("_ops.pyi").replace("_", ".")
    found = importlib.import_module(f"tessera.{module}")
    stub = defined(parse(file).body) - {"overload", "Sequence"}
    assert sorted(name for name in stub if not hasattr(found, name)) == []


def test_signatures_are_python():
    tree = parse("_ops.pyi")
    functions = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            functions.setdefault(node.name, []).append(node)
    (found,) = functions["index_add"]
    assert [a.arg for a in found.args.args] == ["input", "dim", "index", "source"]
    assert {a.arg for a in found.args.kwonlyargs} == {"alpha", "out"}
    for overloads in functions.values():
        marked = [bool(f.decorator_list) for f in overloads]
        assert all(marked) if len(overloads) > 1 else marked == [False]
