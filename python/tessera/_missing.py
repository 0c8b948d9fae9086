"""What is said of a name that PyTorch has and Tessera lacks."""

import sys


class MissingError(NotImplementedError, AttributeError):
    """A name that is not there: hasattr() is false, and the message says what is."""


def nearest(name, names):
    """The name most like it, or None."""
    import difflib

    found = difflib.get_close_matches(name, [n for n in names if not n.startswith("_")], n=1)
    return found[0] if found else None


def missing(owner, name, names):
    """The error for `owner.name`."""
    shown = owner.replace("tessera", "torch", 1)
    text = f"{shown}.{name} is not implemented in Tessera yet"
    like = nearest(name, names)
    if like:
        text += f"; the nearest name that exists is {shown}.{like}"
    return MissingError(text)


def module_getattr(module_name):
    """A module's `__getattr__`: loads its submodules on demand, and raises for what is missing."""

    def getattr_(name):
        if not name.startswith("__"):
            import importlib

            try:
                return importlib.import_module(f"{module_name}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{module_name}.{name}":
                    raise
            raise missing(module_name, name, vars(sys.modules[module_name]))
        raise AttributeError(f"module '{module_name}' has no attribute '{name}'")

    return getattr_
