"""Tensors and deep learning with PyTorch's API.

`import tessera as torch`, or `tessera run script.py`, which makes `import torch` mean Tessera.
"""

import sys as _sys
from math import e, inf, nan, pi

from . import _cuda_libs

_cuda_libs.find()

from . import _C
from ._C import (
    Generator,
    OutOfMemoryError,
    Size,
    Tensor,
    as_tensor,
    can_cast,
    device,
    dtype,
    frombuffer,
    get_default_dtype,
    initial_seed,
    is_grad_enabled,
    promote_types,
    result_type,
    set_default_dtype,
    tensor,
)
from ._missing import StandInFinder, mark_missing_attributes, module_getattr

globals().update(_C.dtypes)
# Every operator's function, derived from its record.
from ._operators import functions as _functions_of

globals().update(_functions_of())

from ._layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from . import _tensor
from ._numpy import from_numpy
from ._interchange import asarray, from_dlpack
from ._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ._functions import (
    broadcast_shapes,
    is_complex,
    is_conj,
    is_floating_point,
    is_neg,
    is_nonzero,
    is_signed,
    is_tensor,
    manual_seed,
    numel,
    seed,
    split,
    typename,
)
from ._indexing import histogramdd, nonzero, unique, unique_consecutive
from ._tensor_str import set_printoptions
from . import autograd
from . import fuse
from . import nn
from .random import default_generator, fork_rng, get_rng_state, set_rng_state
from .amp import (
    autocast,
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)

__version__ = "0.1.0"
newaxis = None

mark_missing_attributes(Tensor)
_sys.meta_path.append(StandInFinder)
# What loads when it is first used, by the file that has it.
_FILES = {"storage": "UntypedStorage TypedStorage", "utils.dlpack": "to_dlpack"}
_LATE = {name: file for file, names in _FILES.items() for name in names.split()}
__getattr__ = module_getattr(__name__, _LATE)
