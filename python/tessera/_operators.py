"""The operators' functions by the module that Python has them in."""

from . import _C


def functions(module=""):
    """{name: function} of one module: "" is the package itself, "linalg", "nn.functional".

    Names with a leading underscore are PyTorch's own where they are documented, else ours alone."""
    found = {}
    for path, function in _C.ops.items():
        place, _, name = path.rpartition(".")
        if place == module and (not name.startswith("_") or function.__doc__):
            found[name] = function
    return found
