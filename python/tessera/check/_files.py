"""The modules of a program that lie beside it."""

import ast
import os


def _candidates(folder, dotted):
    """Files that `import dotted` would run, looked for in a folder."""
    at = folder
    parts = dotted.split(".") if dotted else []
    for part in parts[:-1]:
        at = os.path.join(at, part)
        yield os.path.join(at, "__init__.py")
    if parts:
        yield os.path.join(at, parts[-1] + ".py")
        yield os.path.join(at, parts[-1], "__init__.py")


def _imported(tree):
    """Pairs of how many folders up, and the dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            yield node.level, base
            for alias in node.names:
                yield node.level, f"{base}.{alias.name}" if base else alias.name


def _roots(path):
    """Where a plain import may find modules of the program: its folder, and above its package."""
    folder = os.path.dirname(os.path.abspath(path))
    yield folder
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
        yield folder


def local_modules(path):
    """Paths of the files beside `path` that it imports, relative as `path` is."""
    with open(path, "rb") as file:
        tree = ast.parse(file.read(), path)
    found = []
    for up, dotted in _imported(tree):
        if up:
            folder = os.path.dirname(os.path.abspath(path))
            for _ in range(up - 1):
                folder = os.path.dirname(folder)
            folders = [folder]
        else:
            folders = list(_roots(path))
        for folder in folders:
            found += [c for c in _candidates(folder, dotted) if os.path.isfile(c)]
    start = os.path.dirname(path)
    base = os.path.abspath(start or ".")
    return [os.path.join(start, os.path.relpath(p, base)) for p in dict.fromkeys(found)]
