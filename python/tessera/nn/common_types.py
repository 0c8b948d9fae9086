"""Types of sizes, for annotations."""

from typing import TypeVar

from .. import _C

T = TypeVar("T")
Tensor = _C.Tensor


def _each(kind, n):
    """One for all dimensions, or one for each of n."""
    return kind | tuple[(kind,) * n]


_scalar_or_tuple_any_t = T | tuple[T, ...]
_size_any_t = int | tuple[int, ...]
_size_1_t, _size_2_t, _size_3_t, _size_4_t, _size_5_t, _size_6_t = (
    _each(int, n) for n in range(1, 7)
)
_size_any_opt_t = int | None | tuple[int | None, ...]
_size_2_opt_t = _each(int | None, 2)
_size_3_opt_t = _each(int | None, 3)
_ratio_2_t, _ratio_3_t = _each(float, 2), _each(float, 3)
_ratio_any_t = float | tuple[float, ...]
_tensor_list_t = Tensor | list[Tensor] | tuple[Tensor, ...]
_maybe_indices_t = Tensor | tuple[Tensor, Tensor]
