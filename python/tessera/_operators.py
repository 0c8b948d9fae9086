"""The operators' functions by the module that Python has them in."""

from . import _C


def functions(module=""):
    """{name: function} of one module: "" is the package itself, "linalg", "nn.functional"."""
    found = {}
    for path, function in _C.ops.items():
        place, _, name = path.rpartition(".")
        if place == module and not name.startswith("_"):
            found[name] = function
    return found
