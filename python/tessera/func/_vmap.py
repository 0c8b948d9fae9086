"""vmap: a function of one example becomes a function of a batch of them.

It calls the function once for each example and stacks what it returns: exact for every function,
and no faster than the loop it replaces.
"""

import functools

from .. import _C
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

Tensor = _C.Tensor


def _batched_arguments(in_dims, args):
    """The leaves of the arguments, the dimension of each that is mapped over, and the size."""
    leaves, spec = tree_flatten(args)
    if not args:
        raise ValueError(
            "vmap(func)(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
            "trying to vmap over a function with no inputs. The latter is unsupported."
        )
    if isinstance(in_dims, list):
        in_dims = tuple(in_dims)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap(func, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the "
            f"structure of inputs. in_dims has structure {tree_flatten(in_dims)[1]} but inputs has "
            f"structure {spec}."
        )
    sizes = set()
    places = []
    for leaf, dim in zip(leaves, dims):
        if dim is not None:
            if not isinstance(dim, int):
                raise ValueError(
                    f"vmap(func, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input "
                    "but in_dim must be either an integer dimension or None."
                )
            if not isinstance(leaf, Tensor):
                raise ValueError(
                    f"vmap(func, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input "
                    f"but the input is of type {type(leaf)}. We cannot vmap over non-Tensor "
                    "arguments, please use None as the respective in_dim"
                )
            if not -leaf.dim() <= dim < leaf.dim():
                raise ValueError(
                    f"vmap(func, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some "
                    f"input, but that input is a Tensor of dimensionality {leaf.dim()} so expected "
                    f"in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
                )
            sizes.add(leaf.shape[dim])
        places.append(dim)
    if not sizes:
        raise ValueError(
            f"vmap(func, in_dims={in_dims}, ...)(<inputs>): at least one input has to be mapped "
            "over"
        )
    if len(sizes) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sorted(sizes)} for the mapped dimension"
        )
    return leaves, spec, places, sizes.pop()


def _stacked(results, out_dims):
    """One tree of results for each example becomes one tree of batches."""
    flat = [tree_flatten(result) for result in results]
    spec = flat[0][1]
    for leaf in flat[0][0]:
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap(func): `func` must only return Tensors, got type {type(leaf)}. Did you mean "
                "to set out_dims= to None for output?"
            )
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap(func, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the "
            f"structure of outputs. out_dims has structure {tree_flatten(out_dims)[1]} but outputs "
            f"has structure {spec}."
        )
    parts = [
        column[0] if dim is None else _C.ops["stack"](list(column), dim)
        for dim, column in zip(dims, zip(*(leaves for leaves, _ in flat)))
    ]
    return tree_unflatten(parts, spec)


class _Random:
    """What happens to random numbers: drawn for each example, drawn alike, or an error."""

    def __init__(self, randomness):
        from ..random import get_rng_state, set_rng_state

        self._get, self._set = get_rng_state, set_rng_state
        self._kind = randomness
        self._start = None if randomness == "different" else get_rng_state()

    def next_example(self):
        if self._kind == "same":
            self._set(self._start)

    def first_is_done(self):
        if self._kind == "error" and not self._get().equal(self._start):
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use "
                "the 'same' or 'different' randomness flags on vmap or perform the randomness "
                "operation out of vmap"
            )


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that maps func over a dimension of its inputs and stacks the results.

    Keyword arguments are handed on as they are.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        leaves, spec, places, size = _batched_arguments(in_dims, args)
        if size == 0:
            raise NotImplementedError("vmap over a dimension of size 0 is not implemented")
        random, results = _Random(randomness), []
        batched = [x for x, d in zip(leaves, places) if d is not None]
        _C._push_batch_scope(size, randomness == "different", batched)
        try:
            for i in range(size):
                random.next_example()
                if i > 0:
                    _C._begin_next_example()
                one = [x if d is None else x.select(d, i) for x, d in zip(leaves, places)]
                results.append(func(*tree_unflatten(one, spec), **kwargs))
                if i == 0:
                    random.first_is_done()
        finally:
            _C._pop_batch_scope()
        return _stacked(results, out_dims)

    return mapped
