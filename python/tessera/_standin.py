"""Stand-ins for what PyTorch has and Tessera lacks: to import, subclass and name, not to use."""

import functools
import importlib
import sys
from abc import ABCMeta
from importlib.machinery import ModuleSpec

from ._missing import MissingError, hint, is_mentioned, torch_name
from ._names import is_known, is_module

_MENTIONS = ("IMPORT_FROM", "LOAD_ATTR", "LOAD_METHOD")


def _refuse(cls, *args, **kwargs):
    made = cls.__dict__.get("_stands_for")
    if made is None:
        raise NotImplementedError(
            f"{cls.__name__} derives from {cls._stands_for}, which is not implemented in Tessera "
            "yet"
        )
    owner, _, name = made.rpartition(".")
    module = sys.modules.get(owner.replace("torch", "tessera", 1))
    like = hint(owner, name, dir(module)) if module and not _is_stand_in(module) else ""
    raise NotImplementedError(f"{made} is not implemented in Tessera yet{like}")


class StandInType(ABCMeta):
    """The type of stand-ins: classes that can be derived from, but neither called nor looked into.

    ABCMeta, so that programs may derive from a stand-in and an abstract class at once.
    """

    __call__ = _refuse
    __bool__ = __len__ = __iter__ = __contains__ = __enter__ = __index__ = __float__ = _refuse

    def __getattr__(cls, name):
        if not name.startswith("_") and is_mentioned(sys._getframe(1), _MENTIONS):
            return stand_in(f"{cls._stands_for}.{name}")
        raise AttributeError(f"{cls._stands_for}.{name} is not implemented in Tessera yet")

    def __getitem__(cls, item):
        return cls

    def __repr__(cls):
        if "_stands_for" not in cls.__dict__:
            return super().__repr__()
        return f"<stand-in for {cls._stands_for}, which is not implemented in Tessera yet>"


class _StandIn(metaclass=StandInType):
    _stands_for = ""

    def __init_subclass__(cls, **unused):  # what the real class would take
        super().__init_subclass__()


@functools.cache
def stand_in(full_name):
    """The stand-in for `torch.x.y`: the same one each time."""
    owner, _, name = full_name.rpartition(".")
    bases = (_StandIn,)
    if name.endswith("Warning"):
        bases += (Warning,)
    elif name.endswith(("Error", "Exception")):
        bases += (Exception,)  # may stand in an `except`
    return StandInType(name, bases, {"_stands_for": full_name, "__module__": owner})


def _is_stand_in(module):
    return isinstance(getattr(module, "__loader__", None), StandInLoader)


def _class_of_package(module_name, name):
    """torch.nn.modules.linear.Linear is torch.nn.Linear: a class of the nearest package there is.

    PyTorch keeps its classes in files of their own; where we lay them out otherwise they are found
    in the package that shows them.
    """
    while module_name.count(".") > 1:
        module_name = module_name.rpartition(".")[0]
        module = sys.modules[module_name]
        if not _is_stand_in(module):
            found = getattr(module, name, None)
            return found if isinstance(found, type) else None
    return None


def _getattr_of(module_name):
    shown = torch_name(module_name)

    def getattr_(name):
        if name.startswith("__"):
            raise AttributeError(f"module '{module_name}' has no attribute '{name}'")
        found = _class_of_package(module_name, name)
        if found is not None:
            return found
        if not is_known(shown, name):
            raise AttributeError(f"module '{shown}' has no attribute '{name}'", name=name)
        if not is_mentioned(sys._getframe(1), _MENTIONS):
            raise MissingError(shown, name)
        if is_module(f"{shown}.{name}"):
            return importlib.import_module(f"{module_name}.{name}")
        return stand_in(f"{shown}.{name}")

    return getattr_


class StandInLoader:
    """Makes a module of stand-ins."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__doc__ = f"Stands in for {torch_name(module.__name__)}."
        module.__getattr__ = _getattr_of(module.__name__)


def find_stand_in(name):
    """The spec of a module that PyTorch has and Tessera lacks; None for what PyTorch lacks too."""
    if not is_module(torch_name(name)):
        return None
    return ModuleSpec(name, StandInLoader(), is_package=True)
