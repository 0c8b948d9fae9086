"""PyTorch's public names: what tells a name that Tessera lacks from one that nobody has.

The lists beside this file are read when they are first asked for.
"""

import functools
import os


def path_of(list_name):
    return os.path.join(os.path.dirname(__file__), list_name)


def read_list(path):
    """`owner: name name ...` lines, which may go on in lines that begin with a space."""
    names = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            if not line.startswith(" "):
                owner, _, line = line.partition(":")
                mine = names[owner] = []
            mine += line.split()
    return names


@functools.cache
def _modules():
    lists = read_list(path_of("modules.txt"))
    return {module: frozenset(names) for module, names in lists.items()}


@functools.cache
def tensor_names():
    """What PyTorch's Tensor has."""
    return frozenset(read_list(path_of("tensor.txt"))["torch.Tensor"])


def names_in(module):
    """What PyTorch has in the module `torch.x`; nothing where that is not listed."""
    return _modules().get(module, frozenset())


def is_module(name):
    """Is `torch.x` a module of PyTorch's?"""
    known = _modules()
    return name != "*" and (name in known or name in known["*"])


def is_known(module, name):
    """Does PyTorch have `module.name`?"""
    return name in names_in(module) or module in _modules()["*"] or is_module(f"{module}.{name}")
