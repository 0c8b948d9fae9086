"""What `size_average` and `reduce` of old programs mean."""

import warnings


def legacy_get_string(size_average, reduce, emit_warning=True):
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    chosen = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{chosen}' instead.",
            stacklevel=3,
        )
    return chosen


def get_enum(reduction):
    """PyTorch's number of a reduction."""
    if reduction in ("none", "mean", "sum"):
        return ("none", "mean", "sum").index(reduction)
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead."
        )
        return 1
    raise ValueError(f"{reduction} is not a valid value for reduction")
