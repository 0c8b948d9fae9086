"""What Tessera and PyTorch have: questions about names, answered by the package itself."""

import functools
import inspect

import tessera

from .. import _names
from .._missing import nearest, present_in
from .._standin import StandInLoader


class Unknown(Exception):
    """Nothing can be said of it."""


def look_up(dotted):
    """The object of Tessera's that `torch.x.y` is; raises LookupError where a part is missing.

    The error's arguments: the dotted name, the part's owner, the part, the names there.
    """
    found, owner = tessera, "torch"
    for name in dotted.split(".")[1:]:
        is_tensor = isinstance(found, type) and issubclass(found, tessera.Tensor)
        present = present_in(found) if is_tensor else dir(found)
        part = getattr(found, name, None) if not is_tensor or name in present else None
        missing = part is None and name not in present
        if missing or isinstance(getattr(part, "__loader__", None), StandInLoader):
            raise LookupError(dotted, "torch.Tensor" if is_tensor else owner, name, present)
        found = part
        owner += "." + name
    return found


def missing_text(dotted, owner, name, present):
    """What is said of `dotted`, whose part `owner.name` is missing."""
    if owner == "torch.Tensor":
        known, shown = name in _names.tensor_names(), "Tensor"
    else:
        # What classes and other objects have is not listed.
        known, shown = _names.is_known(owner, name) or not _names.is_module(owner), owner
    like = nearest(name, set(present) - {name})
    ending = (
        f"; nearest: {shown}.{like}" if like and not _names.is_module(f"{owner}.{name}") else ""
    )
    if known:
        return f"{dotted} is not implemented in Tessera yet{ending}"
    return f"{dotted} is known neither to PyTorch nor to Tessera{ending}"


@functools.cache
def _records():
    """Keywords of each operator: its overloads' arguments together."""
    keywords = {}
    for record in tessera._C.all_ops():
        names = keywords.setdefault(record["name"], set())
        names.update(record["args"])
        if "out" in record["forms"]:
            names.add("out")
        functional = any(path.startswith("nn.functional.") for path in record["paths"])
        if functional and "inplace" in record["forms"]:
            names.add("inplace")
        if record["args"] and record["args"][0] == "self":
            names |= {"input", "x"}
        if "dim" in names:
            names.add("axis")
        if "keepdim" in names:
            names.add("keepdims")
        if "other" in names:
            names.add("x2")
    for name in list(keywords):
        keywords.setdefault(name + "_", keywords[name] - {"out"})
    return keywords


def keywords_of(function):
    """The keywords a function takes; raises Unknown where anything goes or nothing is known."""
    if type(function) in (type(tessera._C.ops["add"]), type(tessera.Tensor.add)):
        names = _records().get(function.__name__)
        if names is None:
            raise Unknown
        return names
    if not callable(function):
        raise Unknown
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise Unknown from None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise Unknown
    return {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}


def tensor_text(name):
    """What is said of a tensor's missing attribute."""
    return missing_text(f"Tensor.{name}", "torch.Tensor", name, _on_tensor())


@functools.cache
def _on_tensor():
    return present_in(tessera.Tensor)


def tensor_has(name):
    return name in _on_tensor() or name.startswith("__")


@functools.cache
def ordinary_names():
    """Attributes of Python's and others' everyday types: no sign of a tensor."""
    names = set()
    for kind in (str, bytes, list, dict, set, int, float, complex, tuple, range, type, object):
        names |= set(dir(kind))
    # NumPy's and pandas' arrays, files, random generators, threads, loggers, regular expressions.
    return names | set(
        """abs absolute add all any apply_ argmax argmin argsort astype ceil choice clip
        close compress cov cpu cross cuda cumprod cumsum data describe device diag diff
        dim div dot double dtype eq exp explode fill flatten float floor flush ge
        get_device grad gt half hist indices item itemset itemsize iterrows join le log lt
        map mask max mean median merge min mode mul name names nbytes ndim ne new nonzero
        norm normal normalize nunique outer plot pow prod put quantile random_ ravel read
        register_hook rename repeat requires_grad reset reshape resize roll round sample
        save shape share_memory_ shuffle sign size sort split sqrt square squeeze stack
        start std step stop strides sub submit sum swapaxes take tensor tile to tobytes
        tolist trace transform transpose type uniform unique update var view wait where
        write zero_grad""".split()
    )
