"""Functions of the package that are no operators."""

from . import _C

Tensor = _C.Tensor


def is_tensor(obj):
    return isinstance(obj, Tensor)


def is_storage(obj):
    """Is it a storage? None is where that file was not loaded yet."""
    import sys

    storage = sys.modules.get("tessera.storage")
    return storage is not None and isinstance(obj, (storage.UntypedStorage, storage.TypedStorage))


def is_floating_point(input):
    return input.is_floating_point()


def is_complex(input):
    return input.is_complex()


def is_signed(input):
    return input.is_signed()


def is_conj(input):
    return input.is_conj()


def is_neg(input):
    return input.is_neg()


def is_inference(input):
    return input.is_inference()


def is_same_size(input, other):
    return input.is_same_size(other)


def is_nonzero(input):
    """Is the only element of a tensor not zero?"""
    return bool(input)


def get_device(input):
    return input.get_device()


def resolve_conj(input):
    return input.resolve_conj()


def resolve_neg(input):
    return input.resolve_neg()


def numel(input):
    return input.numel()


def gradient(input, *, spacing=None, dim=None, edge_order=1):
    """Slopes along each dimension by differences of neighbours: at distances `spacing`, or at the
    coordinates in it."""
    gradient = _C.ops["gradient"]
    options = {} if dim is None else {"dim": dim}
    distances = isinstance(spacing, (list, tuple)) and any(isinstance(x, complex) for x in spacing)
    if spacing is None or not distances:
        if spacing is not None:
            options["spacing"] = spacing
        return gradient(input, edge_order=edge_order, **options)
    # The operator takes a list of real distances, or one complex one.
    gradient(input, edge_order=edge_order, spacing=[1.0] * len(spacing), **options)  # checks
    if dim is None:
        dim = range(input.dim())
    dims = [dim] if isinstance(dim, int) else [*dim]
    if len(spacing) == 1:
        spacing = [*spacing] * len(dims)
    return tuple(
        gradient(input, edge_order=edge_order, spacing=s, dim=d)[0] for s, d in zip(spacing, dims)
    )


def split(tensor, split_size_or_sections, dim=0):
    """Views of pieces along a dimension: of one size, or of the sizes given."""
    return _C.ops["split"](tensor, split_size_or_sections, dim)


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to."""
    found = []
    for shape in shapes:
        if not isinstance(shape, (tuple, list)):
            shape = (shape,)
        found += [1] * (len(shape) - len(found))
        for at, size in enumerate(reversed(shape)):
            if size < 0:
                raise RuntimeError(
                    f"Trying to create tensor with negative dimension ({size}): ({shape})"
                )
            if found[at] == 1:
                found[at] = size
            elif size not in (1, found[at]):
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape: "
                    + " and ".join(str(one) for one in shapes)
                )
    return _C.Size(reversed(found))


def manual_seed(seed):
    """Seeds every device's generator; PyTorch's own numbers follow on the CPU."""
    seed = int(seed)
    if not -(2**63) <= seed < 2**64:
        raise RuntimeError("Overflow when unpacking long")
    _C._manual_seed(seed % 2**64)


def seed():
    """Seeds every device's generator with a number nobody knows; returns it."""
    import secrets

    chosen = secrets.randbits(64)
    _C._manual_seed(chosen)
    return chosen


def typename(o):
    if isinstance(o, Tensor):
        return o.type()
    kind = o if isinstance(o, type) else type(o)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
