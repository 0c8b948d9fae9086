"""What happens to a name that is not there: see also _standin.

`torch.x` raises when it is used: MissingError for what PyTorch has and Tessera lacks, a plain
AttributeError for what neither has. `from torch import x` and `import torch.x` give a stand-in for
what PyTorch has, which raises when it is used, so that a program that only mentions it still runs.
"""

import sys
from _frozen_importlib_external import PathFinder, SourceFileLoader  # loaded by Python itself


class MissingError(NotImplementedError, AttributeError):
    """A name of PyTorch's that Tessera lacks: hasattr() is false, and the message says what is.

    The nearest name is looked for when the message is read: hasattr() reads none.
    """

    def __init__(self, owner, name, names=()):
        super().__init__(f"{owner}.{name} is not implemented in Tessera yet")
        self._wanted = owner, name, names

    def __str__(self):
        return super().__str__() + hint(*self._wanted)


def torch_name(module):
    """What PyTorch calls a module of ours."""
    return module.replace("tessera", "torch", 1)


def nearest(name, names):
    """The name most like it, or None."""
    import difflib

    public = [n for n in names if not n.startswith("_")]
    found = difflib.get_close_matches(name, public, n=1)
    if not found:  # ReLu for relu
        found = [n for n in public if n.lower() == name.lower()]
    return found[0] if found else None


def hint(owner, name, names):
    """The end of a message: the name that was perhaps meant."""
    like = nearest(name, names)
    return f"; the nearest name that exists is {owner}.{like}" if like else ""


def _unknown(module, name, names):
    return AttributeError(
        f"module '{module}' has no attribute '{name}'" + hint(module, name, names), name=name
    )


def is_mentioned(frame, operations):
    """Is a frame just now carrying out one of these operations, and not calling hasattr()?"""
    from opcode import opname

    return opname[frame.f_code.co_code[frame.f_lasti]] in operations


def _submodule(module_name, name):
    """Loads tessera.x.name if there is such a file."""
    import importlib

    folders = getattr(sys.modules[module_name], "__path__", None)
    if not folders or PathFinder.find_spec(f"{module_name}.{name}", folders) is None:
        return None
    return importlib.import_module(f"{module_name}.{name}")


def _hidden_operator(module_name, name):
    """torch._segment_reduce: operators that PyTorch has under a name with an underscore."""
    from . import _C

    return _C.ops.get(f"{module_name}.{name}".split(".", 1)[1])


def module_getattr(module_name, files=None):
    """A module's `__getattr__`: loads its submodules on demand, and raises for what is missing.

    `files` names the submodule that holds a name, for names that load when they are first used.
    """

    def getattr_(name, frame=None):
        if files and name in files:
            import importlib

            module = importlib.import_module(f"{module_name}.{files[name]}")
            value = getattr(module, name)
            setattr(sys.modules[module_name], name, value)
            return value
        if name.startswith("__"):
            raise AttributeError(f"module '{module_name}' has no attribute '{name}'")
        if name.startswith("_") and (hidden := _hidden_operator(module_name, name)):
            return hidden
        found = _submodule(module_name, name)
        if found is not None:
            return found
        from ._names import is_known

        shown = torch_name(module_name)
        if not is_known(shown, name):
            raise _unknown(shown, name, dir(sys.modules[module_name]))
        if is_mentioned(frame or sys._getframe(1), ("IMPORT_FROM",)):
            from ._standin import stand_in

            return stand_in(f"{shown}.{name}")
        raise MissingError(shown, name, dir(sys.modules[module_name]))

    getattr_.says_what_is_missing = True
    return getattr_


def _with_own(own, module_name):
    """A module's own `__getattr__`, and where it finds nothing that of all modules."""
    rest = module_getattr(module_name)

    def getattr_(name):
        try:
            return own(name)
        except AttributeError as error:
            if isinstance(error, MissingError):
                raise
        return rest(name, sys._getframe(1))

    return getattr_


class _Loader(SourceFileLoader):
    """Loads a file of the package, and gives it a `__getattr__` that says what is missing."""

    def exec_module(self, module):
        super().exec_module(module)
        own = vars(module).get("__getattr__")
        if own is None:
            module.__getattr__ = module_getattr(module.__name__)
        elif not hasattr(own, "says_what_is_missing"):
            module.__getattr__ = _with_own(own, module.__name__)


class PackageFinder:
    """The first finder: in every module of the package, what is missing is said the same way."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("tessera."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class StandInFinder:
    """The last finder: makes `import torch.x` work for modules that only PyTorch has."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("tessera."):
            return None
        from ._standin import find_stand_in

        return find_stand_in(name)


class _MissingAttribute:
    """In the place of a method or property that PyTorch's Tensor has."""

    __slots__ = ("_name",)

    def __init__(self, name):
        self._name = name

    def __get__(self, instance, owner):
        raise MissingError("Tensor", self._name, present_in(owner))


def present_in(cls):
    """The names that a class of tensors has."""
    missing = set()
    for base in cls.__mro__:
        missing |= {n for n, v in vars(base).items() if isinstance(v, _MissingAttribute)}
    return set(dir(cls)) - missing


def install_finders():
    sys.meta_path.insert(0, PackageFinder)
    sys.meta_path.append(StandInFinder)


def mark_missing_attributes(tensor_type):
    """Lets `x.name` say of PyTorch's names that Tessera lacks them.

    Descriptors rather than a __getattr__: that would make every access to an attribute slower.
    """
    from ._names import tensor_names

    present = vars(tensor_type)
    for name in tensor_names():
        if name not in present and not name.startswith("__"):
            setattr(tensor_type, name, _MissingAttribute(name))
