"""Nested containers as a list of leaves and the structure around them.

Tuples, named tuples, lists, dictionaries and what register_pytree_node() names are containers;
everything else is a leaf, None too.
"""

from collections import OrderedDict, defaultdict, deque
from typing import NamedTuple


class _Kind(NamedTuple):
    flatten: object  # container -> (children, context)
    unflatten: object  # (children, context) -> container


def _of_dict(tree):
    return list(tree.values()), list(tree)


SUPPORTED_NODES = {
    tuple: _Kind(lambda t: (list(t), None), lambda children, _: tuple(children)),
    list: _Kind(lambda t: (list(t), None), lambda children, _: list(children)),
    dict: _Kind(_of_dict, lambda children, keys: dict(zip(keys, children))),
    OrderedDict: _Kind(_of_dict, lambda children, keys: OrderedDict(zip(keys, children))),
    defaultdict: _Kind(
        lambda t: (list(t.values()), (t.default_factory, list(t))),
        lambda children, context: defaultdict(context[0], zip(context[1], children)),
    ),
    deque: _Kind(lambda t: (list(t), t.maxlen), lambda children, n: deque(children, maxlen=n)),
}
_named_tuple = _Kind(lambda t: (list(t), type(t)), lambda children, kind: kind(*children))


def register_pytree_node(cls, flatten_fn, unflatten_fn, **names):
    """Lets instances of a class be containers."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = _Kind(flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def is_namedtuple(obj):
    return isinstance(obj, tuple) and hasattr(type(obj), "_fields")


def _kind_of(tree):
    kind = SUPPORTED_NODES.get(type(tree))
    if kind is None and isinstance(tree, tuple) and type(tree) is not tuple:
        if is_namedtuple(tree):
            return _named_tuple
        if hasattr(type(tree), "n_sequence_fields"):  # torch.return_types.max and the like
            return _Kind(lambda t: (list(t), type(t)), lambda children, kind: kind(children))
    return kind


class TreeSpec:
    """The structure around leaves."""

    def __init__(self, type, context, children_specs):
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_leaves = sum(child.num_leaves for child in children_specs) if type else 1

    def is_leaf(self):
        return self.type is None

    def unflatten(self, leaves):
        return tree_unflatten(leaves, self)

    def __eq__(self, other):
        return (
            isinstance(other, TreeSpec)
            and (self.type, self.context) == (other.type, other.context)
            and self.children_specs == other.children_specs
        )

    __hash__ = None

    def __repr__(self):
        if self.is_leaf():
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


class LeafSpec(TreeSpec):
    def __init__(self):
        super().__init__(None, None, [])


def tree_flatten(tree, is_leaf=None):
    """(leaves, structure)"""
    leaves = []
    return leaves, _walk(tree, is_leaf, leaves)


# Not inside: a function that names itself is a cycle, and would keep the leaves until the next
# garbage collection.
def _walk(node, is_leaf, leaves):
    kind = None if is_leaf is not None and is_leaf(node) else _kind_of(node)
    if kind is None:
        leaves.append(node)
        return LeafSpec()
    children, context = kind.flatten(node)
    return TreeSpec(type(node), context, [_walk(child, is_leaf, leaves) for child in children])


def tree_unflatten(leaves, treespec):
    """The containers of a structure around other leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec "
            f"refers to a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    return _build(treespec, iter(leaves))


def _build(spec, rest):
    if spec.is_leaf():
        return next(rest)
    kind = SUPPORTED_NODES.get(spec.type)
    children = [_build(child, rest) for child in spec.children_specs]
    if kind is not None:
        return kind.unflatten(children, spec.context)
    return spec.type(*children) if hasattr(spec.type, "_fields") else spec.type(children)


def tree_leaves(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[0]


tree_iter = tree_leaves


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The same containers with func(leaf, ...) for each leaf; all trees have one structure."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = []
    for other in rests:
        more, its = tree_flatten(other, is_leaf)
        if its != spec:
            raise ValueError(f"the trees differ in structure: {spec} and {its}")
        others.append(more)
    return tree_unflatten([func(*group) for group in zip(leaves, *others)], spec)


def tree_map_(func, tree, *rests, is_leaf=None):
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _test_of(type_or_types):
    if isinstance(type_or_types, (type, tuple)):
        return lambda leaf: isinstance(leaf, type_or_types)
    return type_or_types


def tree_map_only(type_or_types, func, tree, is_leaf=None):
    """func for leaves of these types (or those that a test accepts); others stay."""
    wanted = _test_of(type_or_types)
    return tree_map(lambda x: func(x) if wanted(x) else x, tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    return any(map(pred, tree_leaves(tree, is_leaf)))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """A tree that may end earlier than the structure, one entry for each of its leaves, or None."""

    def walk(node, spec):
        kind = _kind_of(node)
        if kind is None or (is_leaf is not None and is_leaf(node)):
            return [node] * spec.num_leaves
        children, context = kind.flatten(node)
        if spec.is_leaf() or type(node) is not spec.type or context != spec.context:
            return None
        if len(children) != len(spec.children_specs):
            return None
        parts = [walk(child, its) for child, its in zip(children, spec.children_specs)]
        return None if any(part is None for part in parts) else sum(parts, [])

    return walk(tree, treespec)
