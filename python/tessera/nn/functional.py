"""Functions of neural networks.

Most are operators: a record that is called `nn.functional.x` appears here as `x`. Written in
Python is only what chooses between operators or takes Python's own objects. A record goes before a
function of the same name.
"""

from .. import _C
from .._missing import module_getattr
from .._operators import functions

Tensor = _C.Tensor
_ops = _C.ops


def _implicit_dim(name, ndim, stacklevel):
    import warnings

    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def relu(input, inplace=False):
    return _ops["relu_" if inplace else "relu"](input)


def gelu(input, approximate="none"):
    return _ops["gelu"](input, approximate=approximate)


def sigmoid(input):
    return input.sigmoid()


def tanh(input):
    return input.tanh()


def _dropout(name, input, p, training, inplace):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return _ops[name + "_" if inplace else name](input, p, training)


def dropout(input, p=0.5, training=True, inplace=False):
    return _dropout("dropout", input, p, training, inplace)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance as they are, for SELU."""
    return _dropout("alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels."""
    return _dropout("feature_alpha_dropout", input, p, training, inplace)


def _channel_dropout(input, p, training, inplace):
    return _dropout("feature_dropout", input, p, training, inplace)


def _of_one(input, p, training, inplace):
    """Channel dropout of an input without a batch dimension."""
    result = _channel_dropout(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of sequences, (N, C, L) or (C, L)."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return (_channel_dropout if input.dim() == 3 else _of_one)(input, p, training, inplace)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of images, (N, C, H, W)."""
    import warnings

    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    elif input.dim() != 4:
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and "
            "will result in an error in a future release. To retain the behavior and silence this "
            "warning, please use dropout instead. Note that dropout2d exists to provide "
            "channel-wise dropout on inputs with 2 spatial dimensions, a channel dimension, and an "
            "optional batch dimension (i.e. 3D or 4D inputs).",
            stacklevel=2,
        )
    return _channel_dropout(input, p, training, inplace)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels of volumes, (N, C, D, H, W) or (C, D, H, W)."""
    if input.dim() not in (4, 5):
        import warnings

        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and "
            "will result in an error in a future release. To retain the behavior and silence this "
            "warning, please use dropout instead. Note that dropout3d exists to provide "
            "channel-wise dropout on inputs with 3 spatial dimensions, a channel dimension, and an "
            "optional batch dimension (i.e. 4D or 5D inputs).",
            stacklevel=2,
        )
    return (_channel_dropout if input.dim() == 5 else _of_one)(input, p, training, inplace)


def linear(input, weight, bias=None):
    out = input @ weight.t()
    return out if bias is None else out + bias


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalizes groups of channels of each element, then scales and shifts each channel."""
    if (input.numel() < 2 * num_groups or num_groups == 0) and input.dim() >= 2:
        size = input.shape
        values = size[0] * size[1] // num_groups
        for n in size[2:]:
            values *= n
        if values == 1:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got input size {list(size)}"
            )
    return _ops["group_norm"](input, num_groups, weight, bias, eps)


def mse_loss(input, target, reduction="mean"):
    difference = input - target
    squares = difference * difference
    if reduction == "none":
        return squares
    total = squares.sum()
    if reduction == "sum":
        return total
    if reduction != "mean":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return total / squares.numel()


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample that is nearly one class; with hard it is one, and only its gradient is soft."""
    import tessera as torch

    gumbels = -torch.empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = torch.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


def triplet_margin_with_distance_loss(
    anchor,
    positive,
    negative,
    *,
    distance_function=None,
    margin=1.0,
    swap=False,
    reduction="mean",
):
    import tessera as torch

    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = (anchor.dim(), positive.dim(), negative.dim())
    if len(set(dims)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {dims[0]}D, positive {dims[1]}D, and negative "
            f"{dims[2]}D inputs"
        )
    if distance_function is None:
        distance_function = _this().pairwise_distance
    near = distance_function(anchor, positive)
    far = distance_function(anchor, negative)
    if swap:
        far = torch.minimum(far, distance_function(positive, negative))
    loss = torch.clamp_min(margin + near - far, 0)
    return loss if reduction == "none" else getattr(loss, reduction)()


def _max_pool(n):
    values_only, both = f"max_pool{n}d", f"max_pool{n}d_with_indices"

    def max_pool(
        input,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        ceil_mode=False,
        return_indices=False,
    ):
        stride = () if stride is None else stride
        name = both if return_indices else values_only
        return _ops[name](input, kernel_size, stride, padding, dilation, ceil_mode)

    max_pool.__name__ = max_pool.__qualname__ = values_only
    return max_pool


def _sizes(size, input):
    """None in a list of sizes stands for the input's own."""
    if isinstance(size, int):
        return size
    if input.dim() <= len(size):
        raise ValueError(f"Input dimension should be at least {len(size) + 1}")
    own = input.shape[-len(size) :]
    return [o if s is None else s for s, o in zip(size, own)]


def _adaptive_max_pool(n):
    name = f"adaptive_max_pool{n}d"

    def adaptive_max_pool(input, output_size, return_indices=False):
        values, indices = _ops["_" + name](input, _sizes(output_size, input))
        return (values, indices) if return_indices else values

    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = name
    return adaptive_max_pool


def _adaptive_avg_pool(n):
    name = f"adaptive_avg_pool{n}d"

    def adaptive_avg_pool(input, output_size):
        return _ops[name](input, _sizes(output_size, input))

    adaptive_avg_pool.__name__ = adaptive_avg_pool.__qualname__ = name
    return adaptive_avg_pool


def _tuple(value, n):
    return (value,) * n if isinstance(value, int) else tuple(value)


def _max_unpool(n):
    name = f"max_unpool{n}d"

    def max_unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel, padding = _tuple(kernel_size, n), _tuple(padding, n)
        stride = kernel if stride is None else _tuple(stride, n)
        usual = [
            (input.shape[d - n] - 1) * stride[d] + kernel[d] - 2 * padding[d] for d in range(n)
        ]
        if output_size is None:
            output_size = usual
        else:
            output_size = list(output_size)
            if len(output_size) in (n + 1, n + 2):
                output_size = output_size[-n:]
            if len(output_size) != n:
                raise ValueError(
                    f"output_size should be a sequence containing {n} or {n + 2} elements, but it "
                    f"has a length of '{len(output_size)}'"
                )
            for d in range(n):
                if not usual[d] - stride[d] < output_size[d] < usual[d] + stride[d]:
                    raise ValueError(
                        f'invalid output_size "{output_size}" (dim {d} must be between '
                        f"{usual[d] - stride[d]} and {usual[d] + stride[d]})"
                    )
        return _ops[f"nn.functional._max_unpool{n}d"](input, indices, output_size)

    max_unpool.__name__ = max_unpool.__qualname__ = name
    return max_unpool


def _lp_pool(n):
    name = f"lp_pool{n}d"

    def lp_pool(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        kernel = _tuple(kernel_size, n)
        stride = None if stride is None else _tuple(stride, n)
        pooled = _ops[f"avg_pool{n}d"](input.pow(norm_type), kernel, stride, 0, ceil_mode)
        count = 1
        for k in kernel:
            count *= k
        return (pooled.sign() * pooled.abs().relu()).mul(count).pow(1.0 / norm_type)

    lp_pool.__name__ = lp_pool.__qualname__ = name
    return lp_pool


def _fractional_max_pool(n):
    name = f"fractional_max_pool{n}d"

    def with_indices(
        input,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        _random_samples=None,
    ):
        import tessera as torch

        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratio = (output_ratio,) * n if isinstance(output_ratio, (int, float)) else output_ratio
            if len(ratio) != n:
                raise ValueError(
                    f"{name} requires output_ratio to either be a single Int or tuple of Ints."
                )
            output_size = [int(input.size(d - n) * ratio[d]) for d in range(n)]
        if _random_samples is None:
            batch = 1 if input.dim() == n + 1 else input.size(0)
            _random_samples = torch.rand(
                batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device
            )
        return _ops["_fractional_max_pool"](
            input, _tuple(kernel_size, n), _tuple(output_size, n), _random_samples
        )

    def fractional_max_pool(
        input,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        _random_samples=None,
    ):
        both = with_indices(
            input, kernel_size, output_size, output_ratio, return_indices, _random_samples
        )
        return tuple(both) if return_indices else both[0]

    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    fractional_max_pool.__name__ = fractional_max_pool.__qualname__ = name
    return fractional_max_pool, with_indices


for _n in (2, 3):
    globals()[f"fractional_max_pool{_n}d"], globals()[f"fractional_max_pool{_n}d_with_indices"] = (
        _fractional_max_pool(_n)
    )

for _n in (1, 2, 3):
    globals()[f"max_pool{_n}d"] = _max_pool(_n)
    globals()[f"adaptive_max_pool{_n}d"] = _adaptive_max_pool(_n)
    globals()[f"adaptive_avg_pool{_n}d"] = _adaptive_avg_pool(_n)
    globals()[f"max_unpool{_n}d"] = _max_unpool(_n)
    globals()[f"lp_pool{_n}d"] = _lp_pool(_n)


_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """The input brought to another size by the given mode."""
    n = input.dim() - 2
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | "
                "bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, (list, tuple)):
            if len(size) != n:
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, but got "
                    f"input with spatial dimensions of {list(input.shape[2:])} and output size of "
                    f"{size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                    "output size in (o1, o2, ...,oK) format."
                )
            if not all(isinstance(x, int) or hasattr(x, "__index__") for x in size):
                raise TypeError(f"expected size to be one of int or Tuple[int], but got {size}")
            sizes = [int(x) for x in size]
        else:
            sizes = [int(size)] * n
        scales = None
    elif scale_factor is not None:
        if isinstance(scale_factor, (list, tuple)):
            if len(scale_factor) != n:
                raise ValueError(
                    "Input and scale_factor must have the same number of spatial dimensions, but "
                    f"got input with spatial dimensions of {list(input.shape[2:])} and "
                    f"scale_factor of shape {scale_factor}."
                )
            scales = [float(x) for x in scale_factor]
        else:
            scales = [float(scale_factor)] * n
        import math

        sizes = [math.floor(input.shape[d + 2] * scales[d]) for d in range(n)]
    else:
        raise ValueError("either size or scale_factor should be defined")
    if recompute_scale_factor is not None and recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if recompute_scale_factor:
        scales = None
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
            "tensor as input"
        )
    if mode == "area":
        return _this().__dict__[f"adaptive_avg_pool{n}d"](input, sizes)
    if mode not in ("nearest", "nearest-exact") and _LINEAR.get(mode) != n:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | "
            f"trilinear | area | nearest-exact (got {mode})"
        )
    if n not in (1, 2, 3):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the "
            f"modes: nearest | linear | bilinear | bicubic | trilinear | area (got {mode})"
        )
    return _ops["_upsample"](
        input, sizes, scales or [0.0] * n, mode, bool(align_corners), bool(antialias)
    )


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Values of input at the places grid names."""
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if mode not in modes:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in paddings:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        import warnings

        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired. See the "
            "documentation of grid_sample for details."
        )
        align_corners = False
    codes = modes.index(mode), paddings.index(padding_mode)
    return _ops["grid_sampler"](input, grid, *codes, align_corners)


def affine_grid(theta, size, align_corners=None):
    """Places for grid_sample: where each pixel of an output of this size comes from."""
    if align_corners is None:
        import warnings

        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired. See the "
            "documentation of grid_sample for details."
        )
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if theta.dim() != 3 or theta.shape[-2] != n or theta.shape[-1] != n + 1:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. "
            f"Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return _ops["affine_grid_generator"](theta, list(size), align_corners)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def multi_head_attention_forward(*args, **kwargs):
    """See nn._attention; loaded when it is first used."""
    from ._attention import multi_head_attention_forward as loaded

    globals()["multi_head_attention_forward"] = loaded
    return loaded(*args, **kwargs)


def _this():
    import sys

    return sys.modules[__name__]


def __dir__():
    return sorted(globals())


globals().update(functions("nn.functional"))
TYPE_CHECKING = False  # true for type checkers, which know the name
if TYPE_CHECKING:
    from .._nn_functional_ops import *  # noqa: F403
__getattr__ = module_getattr(__name__)
