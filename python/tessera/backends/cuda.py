"""CUDA's settings: precision of matrix products, and which attention is chosen."""

from contextlib import contextmanager

from .. import _C, _flags
from .._missing import module_getattr


def is_built():
    """Can this build use CUDA devices? It opens CUDA's libraries when there is one."""
    import os

    return os.path.exists(os.path.join(os.path.dirname(_C._backend_file("cpu")), _LIBRARY))


_LIBRARY = "libtessera_cuda.so"


class _Matmul:
    """torch.backends.cuda.matmul. What may lose precision is allowed, not done."""

    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    allow_fp16_accumulation = False
    _named = False  # has anybody said which?

    @property
    def allow_tf32(self):
        return _flags.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value):
        self._named = True
        _flags.set_float32_matmul_precision("high" if value else "highest")

    @property
    def fp32_precision(self):
        """ "tf32", "ieee", or "none" where nobody has said: float32 then."""
        return "tf32" if self.allow_tf32 else "ieee" if self._named else "none"

    @fp32_precision.setter
    def fp32_precision(self, value):
        if value not in ("tf32", "ieee", "none"):
            raise RuntimeError(f"Invalid precision: {value!r} is none of 'none', 'ieee', 'tf32'")
        self.allow_tf32 = value == "tf32"
        self._named = value != "none"


matmul = _Matmul()

# As tessera/ops/attention/settings.h has them.
_WAYS = {"flash": 1, "math": 2, "mem_efficient": 4, "cudnn": 8}
_attention = dict.fromkeys(_WAYS, True)


def _allow_attention(**ways):
    """One fused kernel stands behind every name but math; where it cannot, math is taken."""
    _attention.update({name: bool(on) for name, on in ways.items()})
    _C._set_attention_ways(sum(bit for name, bit in _WAYS.items() if _attention[name]))


def enable_flash_sdp(enabled):
    _allow_attention(flash=enabled)


def flash_sdp_enabled():
    return _attention["flash"]


def enable_math_sdp(enabled):
    _allow_attention(math=enabled)


def math_sdp_enabled():
    return _attention["math"]


def enable_mem_efficient_sdp(enabled):
    _allow_attention(mem_efficient=enabled)


def mem_efficient_sdp_enabled():
    return _attention["mem_efficient"]


def enable_cudnn_sdp(enabled):
    _allow_attention(cudnn=enabled)


def cudnn_sdp_enabled():
    return _attention["cudnn"]


@contextmanager
def sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Which ways to compute attention may be chosen from, for a while."""
    before = dict(_attention)
    _allow_attention(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield
    finally:
        _allow_attention(**before)


def preferred_linalg_library(backend=None):
    """PyTorch's choice between cuSOLVER and MAGMA: there is none here."""
    return "default"


preferred_blas_library = preferred_linalg_library


__getattr__ = module_getattr(__name__)
