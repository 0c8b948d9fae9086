"""torch._foreach_x: an operator over lists of tensors, one after the other.

Optimizers that programs bring along are written with these. With deferral on, the pointwise work
of a list becomes few kernels all the same.
"""

from . import _C

_ops = _C.ops
Tensor = _C.Tensor


def _same_length(name, *lists):
    if len({len(given) for given in lists}) > 1:
        raise RuntimeError(
            f"{name}: Tensor lists must have the same number of tensors, got "
            + " and ".join(str(len(given)) for given in lists)
        )
    if not len(lists[0]):
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")


def _each(given, count):
    """An argument for each tensor: a list's elements, or the same one every time."""
    if isinstance(given, (list, tuple)):
        return given
    return [given] * count


def _unary(op, inplace):
    function, name = _ops[op + ("_" if inplace else "")], f"_foreach_{op}{'_' * inplace}"

    def foreach(self):
        _same_length(name, self)
        results = [function(t) for t in self]
        return None if inplace else results

    return foreach


def _binary(op, inplace):
    function, name = _ops[op + ("_" if inplace else "")], f"_foreach_{op}{'_' * inplace}"

    def foreach(self, other, *, alpha=None):
        others = _each(other, len(self))
        _same_length(name, self, others)
        options = {} if alpha is None else {"alpha": alpha}
        results = [function(t, o, **options) for t, o in zip(self, others)]
        return None if inplace else results

    return foreach


def _pointwise(op, inplace):
    """addcmul, addcdiv: with a value for all, for each, or in a tensor."""
    function, name = _ops[op + ("_" if inplace else "")], f"_foreach_{op}{'_' * inplace}"

    def foreach(self, tensor1, tensor2, value=1, *, scalars=None):
        values = value if scalars is None else scalars
        if isinstance(values, Tensor):
            values = values.tolist()
        values = _each(values, len(self))
        _same_length(name, self, tensor1, tensor2, values)
        results = [function(t, a, b, value=v) for t, a, b, v in zip(self, tensor1, tensor2, values)]
        return None if inplace else results

    return foreach


def _lerp(inplace):
    function, name = _ops["lerp_" if inplace else "lerp"], "_foreach_lerp" + "_" * inplace

    def foreach(self, tensors1, weight):
        weights = _each(weight, len(self))
        _same_length(name, self, tensors1, weights)
        results = [function(t, o, w) for t, o, w in zip(self, tensors1, weights)]
        return None if inplace else results

    return foreach


def _foreach_norm(self, ord=2, dtype=None):
    _same_length("_foreach_norm", self)
    return [_ops["linalg.vector_norm"](t, ord, dtype=dtype) for t in self]


def _foreach_max(self):
    _same_length("_foreach_max", self)
    return [_ops["max"](t) for t in self]


def _foreach_copy_(self, src, non_blocking=False):
    _same_length("_foreach_copy_", self, src)
    for t, s in zip(self, src):
        t.copy_(s, non_blocking)


def _foreach_zero_(self):
    _same_length("_foreach_zero_", self)
    for t in self:
        t.zero_()


_UNARY = "abs neg sqrt rsqrt reciprocal exp log sign sigmoid tanh trunc round floor ceil erf expm1"
_BINARY = "add sub mul div maximum minimum pow clamp_min clamp_max"
for _inplace in (False, True):
    _tail = "_" * _inplace
    for _op in _UNARY.split():
        globals()[f"_foreach_{_op}{_tail}"] = _unary(_op, _inplace)
    for _op in _BINARY.split():
        # Larger and smaller of two as bounds: these take numbers too, and have a form that writes.
        _name = {"maximum": "clamp_min", "minimum": "clamp_max"}.get(_op, _op)
        globals()[f"_foreach_{_op}{_tail}"] = _binary(_name, _inplace)
    for _op in ("addcmul", "addcdiv"):
        globals()[f"_foreach_{_op}{_tail}"] = _pointwise(_op, _inplace)
    globals()[f"_foreach_lerp{_tail}"] = _lerp(_inplace)
for _name, _value in list(globals().items()):
    if _name.startswith("_foreach_"):
        _value.__name__ = _value.__qualname__ = _name
