"""What the transforms share: which tensors a transform made, and what a result still hangs on.

A transform gives the function fresh tensors that require gradients. A result goes out with its
graph only where somebody outside could ask for more gradients: an enclosing transform, or a leaf
that the program itself made (a parameter the function closes over).
"""

import threading

from .. import _C
from .._grad_mode import enable_grad
from ..utils._pytree import tree_flatten, tree_map

Tensor = _C.Tensor


class _Local(threading.local):
    depth = 0
    fresh = ()
    records = True  # was the grad mode on where the innermost transform was called?


_local = _Local()


class Level:
    """The scope of one transform."""

    def __enter__(self):
        if _local.depth == 0:
            _local.fresh = []
        self._recorded, _local.records = _local.records, _C.is_grad_enabled()
        self._grad_mode = enable_grad()
        self._grad_mode.__enter__()
        _local.depth += 1
        return self

    def __exit__(self, *exc):
        _local.depth -= 1
        self._grad_mode.__exit__(*exc)
        _local.records = self._recorded
        if _local.depth == 0:
            _local.fresh = ()


def fresh(tensor):
    """A tensor of the same values to differentiate by, connected to what it came from."""
    if tensor.requires_grad:
        return tensor.view_as(tensor)
    made = tensor.detach().requires_grad_()
    _local.fresh.append(made)
    return made


def is_differentiable(x):
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())


def fresh_tree(tree, what):
    """A tree of tensors with fresh ones in their place."""

    def make(leaf):
        if not isinstance(leaf, Tensor):
            raise ValueError(f"{what}: expected tensors, got {type(leaf)}")
        if not is_differentiable(leaf):
            raise RuntimeError(
                f"{what}: only floating point and complex tensors have gradients, got {leaf.dtype}"
            )
        return fresh(leaf)

    return tree_map(make, tree)


def records():
    """A transform computes its gradients under no_grad too; what it returns is then a constant."""
    return _local.records


def wants_graph(tensors, known):
    """Do tensors depend on leaves other than those in `known`, or is there an enclosing level?"""
    if not records():
        return False
    if _local.depth > 1:
        return True
    known = {id(tensor) for tensor in known}
    todo = [t.grad_fn for t in tensors if isinstance(t, Tensor) and t.grad_fn is not None]
    if any(_is_foreign_leaf(t, known) for t in tensors):
        return True
    seen = set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) not in known:
            return True
        todo += [follower for follower, _ in node.next_functions if follower is not None]
    return False


def _is_foreign_leaf(x, known):
    return isinstance(x, Tensor) and x.requires_grad and x.grad_fn is None and id(x) not in known


def fresh_so_far():
    return list(_local.fresh)


def released(tree, keep_graph):
    """A result as it goes out."""
    if keep_graph:
        return tree
    return tree_map(lambda x: x.detach() if isinstance(x, Tensor) else x, tree)


def tensors_of(tree, what):
    """The leaves of an output, all tensors, and the structure."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{what}: Expected f(*args) to return only tensors, got unsupported type "
                f"{type(leaf)}"
            )
    return leaves, spec


def call(func, args, kwargs=None):
    """func(*args, **kwargs), which may write no tensor in place but its own and its arguments."""
    kwargs = kwargs or {}
    leaves, _ = tree_flatten((args, kwargs))
    _C._push_transform_scope([x for x in leaves if isinstance(x, Tensor)])
    try:
        return func(*args, **kwargs)
    finally:
        _C._pop_batch_scope()
