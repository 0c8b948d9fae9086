"""Names of types, for annotations."""

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any

from . import _C
from ._missing import module_getattr
from .storage import TypedStorage, UntypedStorage

Tensor = _C.Tensor
_int, _float, _bool = builtins.int, builtins.float, builtins.bool
_dtype, _device = _C.dtype, _C.device
_size = _C.Size | list[_int] | tuple[_int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]
Number = _int | _float | _bool
Device = _C.device | str | _int | None
FileLike = str | os.PathLike | IO[bytes]
Storage = TypedStorage | UntypedStorage
IntLikeType = _int
FloatLikeType = _float
BoolLikeType = _bool
py_sym_types = ()
PySymType = Any

__getattr__ = module_getattr(__name__)
