"""grad, vjp, jvp, jacobians: functions of functions, made of autograd."""

import functools

from .. import _C, autograd
from ..utils._pytree import tree_flatten, tree_unflatten
from ._levels import (
    Level,
    Tensor,
    call,
    fresh_so_far,
    fresh_tree,
    records,
    released,
    tensors_of,
    wants_graph,
)


def _zeros_like(x):
    return _C.ops["zeros_like"](x)


def _numbers(argnums, count, what):
    """The places of the arguments to differentiate by, counted from the front."""
    wanted = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(wanted, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not wanted:
        raise RuntimeError("argnums must be non-empty")
    places = []
    for n in wanted:
        if not isinstance(n, int) or not -count <= n < count:
            raise RuntimeError(
                f"{what}: Got argnum={n}, but only {count} positional inputs"
                if isinstance(n, int)
                else f"argnums must be int or Tuple[int, ...], got: {type(n)}"
            )
        places.append(n % count)
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got argnums={argnums}")
    return places


def _split_aux(out, has_aux, what):
    if not has_aux:
        return out, None
    if not (isinstance(out, tuple) and len(out) == 2):
        raise RuntimeError(
            f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return out


def _with_fresh(args, argnums, what):
    """The arguments with fresh tensors where they are differentiated by, and these."""
    args = list(args)
    for n in _numbers(argnums, len(args), what):
        args[n] = fresh_tree(args[n], what)
    chosen = args[argnums] if isinstance(argnums, int) else tuple(args[n] for n in argnums)
    return args, chosen


def _gradients(outputs, inputs, cotangents, create_graph, retain_graph=True):
    """The gradients of outputs, zeros where there are none."""
    pairs = [(y, v) for y, v in zip(outputs, cotangents) if y.requires_grad]
    if not pairs or not inputs:
        return [_zeros_like(x) for x in inputs]
    found = autograd.grad(
        [y for y, _ in pairs],
        inputs,
        [v for _, v in pairs],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
    )
    return [_zeros_like(x) if g is None else g for g, x in zip(found, inputs)]


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that returns the gradient of func by its arguments `argnums`, and the value."""

    @functools.wraps(func)
    def gradient_and_value(*args, **kwargs):
        what = "grad_and_value(f, argnums)(*args)"
        with Level():
            args, chosen = _with_fresh(args, argnums, what)
            value, aux = _split_aux(call(func, args, kwargs), has_aux, what)
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"{what}: Expected f(*args) to return a tensor, got {type(value)}"
                )
            if value.dim() != 0:
                raise RuntimeError(
                    f"{what}: Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{value.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            leaves, spec = tree_flatten(chosen)
            keep = wants_graph([value], fresh_so_far())
            one = _C.ops["ones_like"](value)
            found = _gradients([value], leaves, [one], create_graph=keep, retain_graph=keep)
            gradient = tree_unflatten(found, spec)
            value, aux = released(value, keep), released(aux, keep)
        return (gradient, (value, aux)) if has_aux else (gradient, value)

    return gradient_and_value


def grad(func, argnums=0, has_aux=False):
    """A function that returns the gradient of func, which returns one number."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args, **kwargs):
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def vjp(func, *primals, has_aux=False):
    """func(*primals), and a function from cotangents of that to gradients by the primals."""
    what = "vjp(f, *primals)"
    with Level():
        args = fresh_tree(tuple(primals), what)
        known = fresh_so_far()
        out, aux = _split_aux(call(func, args), has_aux, what)
        outputs, out_spec = tensors_of(out, what)
        keep = wants_graph(outputs, fresh_so_far())
        leaves, spec = tree_flatten(args)
        result = released(out, keep), released(aux, keep)

    def pull_back(cotangents, retain_graph=True, create_graph=None):
        given, its = tree_flatten(cotangents)
        if its != out_spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {its}, primal output: {out_spec}"
            )
        with Level():
            graph = records() and (keep or wants_graph(given, known))
            found = _gradients(outputs, leaves, given, graph, retain_graph)
            return tree_unflatten(found, spec)

    return (result[0], pull_back, result[1]) if has_aux else (result[0], pull_back)


class _Linear:
    """A function at a point, and its derivative as a linear map of tangents.

    The derivative is the gradient, by v, of the gradient of v * f: it is linear in v.
    """

    def __init__(self, func, primals, what, has_aux=False):
        self.inputs, self.spec = tree_flatten(fresh_tree(primals, what))
        args = tree_unflatten(self.inputs, self.spec)
        self.out, self.aux = _split_aux(call(func, args), has_aux, what)
        self.outputs, self.out_spec = tensors_of(self.out, what)
        self.keep = wants_graph(self.outputs, fresh_so_far())
        self._linked = [y for y in self.outputs if y.requires_grad]
        self._dummies = [_zeros_like(y.detach()).requires_grad_() for y in self._linked]
        found = [None] * len(self.inputs)
        if self._linked:
            found = autograd.grad(
                self._linked, self.inputs, self._dummies, create_graph=True, allow_unused=True
            )
        self._back = [(i, g) for i, g in enumerate(found) if g is not None and g.requires_grad]

    def push(self, tangents, keep):
        """The derivative in a direction, a tensor for each output."""
        found = [None] * len(self._dummies)
        if self._back:
            found = autograd.grad(
                [g for _, g in self._back],
                self._dummies,
                [tangents[i] for i, _ in self._back],
                retain_graph=True,
                create_graph=keep,
                allow_unused=True,
            )
        found = iter(found)
        pushed = []
        for y in self.outputs:
            tangent = next(found) if y.requires_grad else None
            pushed.append(_zeros_like(y.detach()) if tangent is None else tangent)
        return pushed


def _check_tangents(tangents, spec, inputs, what):
    given, its = tree_flatten(tangents)
    if its != spec:
        raise RuntimeError(
            f"{what}: Expected primals and tangents to have the same python structure. For "
            f"example, if primals is a tuple of 3 tensors, tangents also must be. Got primals "
            f"with structure {spec} and tangents with structure {its}"
        )
    for x, t in zip(inputs, given):
        if not isinstance(t, Tensor) or t.shape != x.shape:
            shape = tuple(t.shape) if isinstance(t, Tensor) else type(t)
            raise RuntimeError(
                f"{what}: a tangent has to have the shape of its primal, {tuple(x.shape)}, not "
                f"{shape}"
            )
    return given


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """func(*primals), and its derivative in the direction of the tangents."""
    what = "jvp(f, primals, tangents)"
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple):
            raise RuntimeError(f"{what}: Expected {name} to be a tuple, got {type(given)}")
    with Level():
        at = _Linear(func, primals, what, has_aux)
        given = _check_tangents(tangents, at.spec, at.inputs, what)
        if strict and any(not y.requires_grad for y in at.outputs):
            raise RuntimeError(f"{what}: the output of f is independent of some of its inputs.")
        keep = at.keep or wants_graph(given, fresh_so_far())
        pushed = tree_unflatten(at.push(given, keep), at.out_spec)
        out, aux = released(at.out, at.keep), released(at.aux, at.keep)
    return (out, pushed, aux) if has_aux else (out, pushed)


def linearize(func, *primals):
    """func(*primals), and the function of tangents that is its derivative there."""
    what = "linearize(f, *primals)"
    with Level():
        at = _Linear(func, primals, what)
        out = released(at.out, at.keep)

    def derivative(*tangents):
        with Level():
            given = _check_tangents(tangents, at.spec, at.inputs, what)
            keep = records() and (at.keep or wants_graph(given, fresh_so_far()))
            return tree_unflatten(at.push(given, keep), at.out_spec)

    return out, derivative


def _refuse_complex(name, tree, where):
    for i, leaf in enumerate(tree_flatten(tree)[0]):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {where} to be real but received complex tensor at "
                f"flattened input idx: {i}"
            )


def _unit_vectors(x):
    """One at a time at each place of a tensor."""
    for i in range(x.numel()):
        unit = _zeros_like(x.detach()).reshape(-1)
        unit[i] = 1
        yield unit.view(x.shape)


def _stack(tensors, shape, dim):
    return _C.ops["stack"](tensors, dim).reshape(shape)


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """The function whose value is the Jacobian of func, row by row."""

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        what = "jacrev(f, argnums)(*args)"
        _refuse_complex("jacrev", args, "inputs")
        with Level():
            args, chosen = _with_fresh(args, argnums, what)
            out, aux = _split_aux(call(func, args, kwargs), has_aux, what)
            outputs, out_spec = tensors_of(out, what)
            _refuse_complex("jacrev", outputs, "outputs")
            keep = wants_graph(outputs, fresh_so_far())
            leaves, spec = tree_flatten(chosen)
            blocks = []
            for y in outputs:
                rows = [_gradients([y], leaves, [unit], keep) for unit in _unit_vectors(y)]
                columns = zip(*rows) if rows else ([] for _ in leaves)
                parts = [
                    _stack(column, (*y.shape, *x.shape), 0)
                    if rows
                    else x.detach().new_zeros((*y.shape, *x.shape))
                    for column, x in zip(columns, leaves)
                ]
                blocks.append(tree_unflatten(parts, spec))
            result, aux = tree_unflatten(blocks, out_spec), released(aux, keep)
        return (result, aux) if has_aux else result

    return jacobian


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error", chunk_size=None):
    """The function whose value is the Jacobian of func, column by column."""

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        what = "jacfwd(f, argnums)(*args)"
        _refuse_complex("jacfwd", args, "inputs")
        places = _numbers(argnums, len(args), what)

        def of_chosen(*chosen):
            whole = list(args)
            for place, value in zip(places, chosen):
                whole[place] = value
            return func(*whole, **kwargs)

        with Level():
            at = _Linear(of_chosen, tuple(args[n] for n in places), what, has_aux)
            _refuse_complex("jacfwd", at.outputs, "outputs")
            zeros = [_zeros_like(x.detach()) for x in at.inputs]
            blocks = [[] for _ in at.outputs]
            for i, x in enumerate(at.inputs):
                columns = []
                for unit in _unit_vectors(x):
                    columns.append(at.push([*zeros[:i], unit, *zeros[i + 1 :]], at.keep))
                for k, y in enumerate(at.outputs):
                    shape = (*y.shape, *x.shape)
                    blocks[k].append(
                        _stack([column[k] for column in columns], shape, -1)
                        if columns
                        else y.detach().new_zeros(shape)
                    )
            trees = [tree_unflatten(block, at.spec) for block in blocks]
            if isinstance(argnums, int):
                trees = [tree[0] for tree in trees]
            result, aux = tree_unflatten(trees, at.out_spec), released(at.aux, at.keep)
        return (result, aux) if has_aux else result

    return jacobian


def hessian(func, argnums=0):
    """The function whose value is the Hessian of func."""
    return jacfwd(jacrev(func, argnums), argnums)
