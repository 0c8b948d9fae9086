"""Products of tensors whose arguments a schema cannot say: as many tensors as there are, or
dimensions as a number or two lists."""

from . import _C

Tensor = _C.Tensor
_ops = _C.ops
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _term(subscripts):
    def letter(s):
        if s is Ellipsis:
            return "..."
        if not 0 <= s < len(_LETTERS):
            raise RuntimeError(
                "einsum(): subscript in subscript list is not within the valid range [0, 52)"
            )
        return _LETTERS[s]

    return "".join(map(letter, subscripts))


def einsum(*args):
    """Sums of products by subscripts: `einsum("ij,jk->ik", a, b)`, or the operands each with a list
    of numbers, `einsum(a, [0, 1], b, [1, 2], [0, 2])`."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], str):
        equation, operands = args[0], args[1:]
    else:
        equation = ",".join(_term(s) for s in args[1::2])
        operands = args[: len(args) // 2 * 2 : 2]
        if len(args) % 2 == 1:
            equation += "->" + _term(args[-1])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]  # all in one list
    return _ops["einsum"](equation, list(operands))


def tensordot(a, b, dims=2, out=None):
    """Sums of products over the last `dims` dimensions of a and the first of b, or over those that
    two lists name."""
    if not isinstance(dims, (int, tuple, list, Tensor)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or "
            f"list[list[int]] containing two lists, but got dims={dims}"
        )
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, (tuple, list)):
        if len(dims) == 1 and isinstance(dims[0], int):
            dims = dims[0]
        else:
            of_a, of_b = (([d] if isinstance(d, int) else list(d)) for d in dims)
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        of_a, of_b = list(range(-dims, 0)), list(range(dims))
    result = _ops["tensordot"](a, b, of_a, of_b)
    if out is None:
        return result
    if out.dtype != result.dtype:
        raise RuntimeError(
            f"tensordot: Expected the output tensor to have dtype {result.dtype}, but got an "
            f"output tensor with dtype {out.dtype}"
        )
    out.resize_(result.shape)
    return out.copy_(result)


def lu(A, pivot=True, get_infos=False, out=None):
    """L and U in one matrix and the rows that were exchanged; with get_infos also whether each
    factorisation went well."""
    found = _ops["linalg.lu_factor_ex"](A, pivot=pivot, check_errors=not get_infos, out=out)
    return tuple(found) if get_infos else tuple(found)[:2]


Tensor.lu = lu
