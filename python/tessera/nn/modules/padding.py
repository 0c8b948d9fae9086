"""Padding by constants, reflection, repetition and wrapping around."""

from .. import functional as F
from .module import Module
from .utils import _ntuple, _pair, _quadruple


class _Pad(Module):
    """The amounts are one number, or two for each dimension, the last dimension first."""

    __constants__ = ["padding"]
    _tuple = None
    _mode = None

    def __init__(self, padding):
        super().__init__()
        self.padding = type(self)._tuple(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _Sides2:
    _tuple = staticmethod(_pair)


class _Sides4:
    _tuple = staticmethod(_quadruple)


class _Sides6:
    _tuple = staticmethod(_ntuple(6))


class _ConstantPadNd(_Pad):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_Sides2, _ConstantPadNd):
    """A constant at both ends."""


class ConstantPad2d(_Sides4, _ConstantPadNd):
    """A constant around an image."""


class ConstantPad3d(_Sides6, _ConstantPadNd):
    """A constant around a volume."""


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ZeroPad1d(_Sides2, _ZeroPadNd):
    """Zeros at both ends."""


class ZeroPad2d(_Sides4, _ZeroPadNd):
    """Zeros around an image."""


class ZeroPad3d(_Sides6, _ZeroPadNd):
    """Zeros around a volume."""


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_Sides2, _ReflectionPadNd):
    """Mirrored at both ends."""


class ReflectionPad2d(_Sides4, _ReflectionPadNd):
    """Mirrored around an image."""


class ReflectionPad3d(_Sides6, _ReflectionPadNd):
    """Mirrored around a volume."""


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_Sides2, _ReplicationPadNd):
    """The ends repeated."""


class ReplicationPad2d(_Sides4, _ReplicationPadNd):
    """The edges of an image repeated."""


class ReplicationPad3d(_Sides6, _ReplicationPadNd):
    """The faces of a volume repeated."""


class _CircularPadNd(_Pad):
    _mode = "circular"
    _dims = ()

    def _check_input_dim(self, input):
        if input.dim() not in self._dims:
            names = " or ".join(f"{d}D" for d in self._dims)
            raise ValueError(f"expected {names} input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        return super().forward(input)


class CircularPad1d(_Sides2, _CircularPadNd):
    """The other end goes on."""

    _dims = (2, 3)


class CircularPad2d(_Sides4, _CircularPadNd):
    """The other side of an image goes on."""

    _dims = (3, 4)


class CircularPad3d(_Sides6, _CircularPadNd):
    """The other side of a volume goes on."""

    _dims = (4, 5)
