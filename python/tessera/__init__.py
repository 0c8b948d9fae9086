"""Tensors and deep learning with PyTorch's API.

`import tessera as torch`, or `tessera run script.py`, which makes `import torch` mean Tessera.
"""

from math import e, inf, nan, pi

from ._missing import install_finders, mark_missing_attributes, module_getattr

install_finders()

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
    get_default_device,
    get_default_dtype,
    initial_seed,
    is_grad_enabled,
    is_inference_mode_enabled,
    promote_types,
    result_type,
    set_default_device,
    set_default_dtype,
    tensor,
)

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
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from . import _tensor, _tensor_methods
from ._numpy import from_numpy
from ._interchange import asarray, from_dlpack
from ._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ._products import einsum, lu, tensordot
from ._functions import (
    broadcast_shapes,
    get_device,
    gradient,
    is_complex,
    is_conj,
    is_floating_point,
    is_inference,
    is_neg,
    is_nonzero,
    is_same_size,
    is_signed,
    is_storage,
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

newaxis = None
# Was the library built with these? PyTorch's older questions.
has_mkl = has_mkldnn = has_openmp = has_mps = has_cudnn = has_spectral = False
has_lapack = True
# torch.torch is torch: programs that say so by mistake run.
import sys as _sys

torch = _sys.modules[__name__]

mark_missing_attributes(Tensor)
# What loads when it is first used, by the file that has it.
_FILES = {
    "serialization": "save load",
    "storage": "UntypedStorage TypedStorage BoolStorage ByteStorage CharStorage ShortStorage "
    "IntStorage LongStorage HalfStorage BFloat16Storage FloatStorage DoubleStorage "
    "ComplexFloatStorage ComplexDoubleStorage",
    "utils.dlpack": "to_dlpack",
    "torch_version": "__version__",
    "_compile": "compile",
    "func": "vmap",
    "_limits": "finfo iinfo",
    "_legacy": "BoolTensor ByteTensor CharTensor ShortTensor IntTensor LongTensor HalfTensor "
    "BFloat16Tensor FloatTensor DoubleTensor ComplexFloatTensor ComplexDoubleTensor "
    "set_default_tensor_type",
    "_flags": "get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads "
    "use_deterministic_algorithms are_deterministic_algorithms_enabled "
    "is_deterministic_algorithms_warn_only_enabled set_deterministic_debug_mode "
    "get_deterministic_debug_mode get_float32_matmul_precision set_float32_matmul_precision "
    "set_flush_denormal set_warn_always is_warn_always_enabled compiled_with_cxx11_abi "
    "get_device_module get_file_path",
    "_streams": "Stream Event",
    "amp": "is_autocast_cache_enabled set_autocast_cache_enabled clear_autocast_cache "
    "autocast_increment_nesting autocast_decrement_nesting is_autocast_cpu_enabled "
    "set_autocast_cpu_enabled get_autocast_cpu_dtype set_autocast_cpu_dtype "
    "get_autocast_gpu_dtype set_autocast_gpu_dtype",
}
_FOREACH = (
    "abs neg sqrt rsqrt reciprocal exp log sign sigmoid tanh trunc round floor ceil erf expm1 add "
    "sub mul div maximum minimum pow clamp_min clamp_max addcmul addcdiv lerp"
)
_LATE = {name: file for file, names in _FILES.items() for name in names.split()}
_LATE |= {f"_foreach_{op}{end}": "_foreach" for op in _FOREACH.split() for end in ("", "_")}
_LATE |= {f"_foreach_{op}": "_foreach" for op in ("norm", "max", "copy_", "zero_")}
__getattr__ = module_getattr(__name__, _LATE)


def __dir__():
    return sorted({*globals(), *_LATE})
