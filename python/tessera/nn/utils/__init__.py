"""Around modules: clipping, parametrizations, sequences, pruning."""

from ..._lazy import lazy_names

_FILES = {
    "clip_grad": (
        "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm"
    ),
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": ("fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights"),
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
    "spectral_norm": "spectral_norm remove_spectral_norm",
    "weight_norm": "weight_norm remove_weight_norm",
}

__getattr__, __dir__, __all__ = lazy_names(__name__, _FILES)

# Functions that are called as the files they stand in: the file must not take their name.
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm
