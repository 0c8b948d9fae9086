"""Operators by the names of PyTorch's dispatcher: `torch.ops.aten.NAME`, and with an overload
`torch.ops.aten.NAME.default`. A name's overloads are one function here, which chooses by the
arguments, so every overload's name leads to it."""

from . import _C

# aten::linalg_det is torch.linalg.det.
_MODULES = ("linalg", "special", "fft")


class Overload:
    """One overload of an operator, `torch.ops.aten.add.Tensor`."""

    def __init__(self, packet, name):
        self._overloadname = name
        self._overloadpacket = packet
        self.__name__ = f"{packet.__name__}.{name}"

    def __call__(self, *args, **kwargs):
        return self._overloadpacket(*args, **kwargs)

    def __repr__(self):
        return (
            f"<OpOverload(op='{self._overloadpacket._qualified}', overload='{self._overloadname}')>"
        )


class OverloadPacket:
    """All overloads of an operator, `torch.ops.aten.add`."""

    def __init__(self, namespace, name, function):
        self._qualified = f"{namespace}.{name}"
        self.__name__ = name
        self._function = function

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"'{self!r}' object has no attribute '{name}'")
        overload = Overload(self, name)
        setattr(self, name, overload)
        return overload

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._qualified}')>"


class Namespace:
    """The operators of one library, `torch.ops.aten`."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        function = _find(name) if self._name in ("aten", "prims") else None
        if function is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        packet = OverloadPacket(self._name, name, function)
        setattr(self, name, packet)
        return packet


def _find(name):
    found = _C.ops.get(name)
    for module in _MODULES:
        if found is None and name.startswith(module + "_"):
            found = _C.ops.get(f"{module}.{name.removeprefix(module + '_')}")
    return found or _C.ops.get(f"nn.functional.{name}")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
    namespace = Namespace(name)
    globals()[name] = namespace
    return namespace
