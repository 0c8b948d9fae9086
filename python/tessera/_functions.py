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


def equal(input, other):
    """Are shape and all elements the same?"""
    if input.shape != other.shape:
        return False
    return input.tolist() == other.tolist()


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Is each element within atol + rtol * abs(other) of the other tensor's?"""
    from math import isnan

    def flat(values):
        return [x for v in values for x in flat(v)] if isinstance(values, list) else [values]

    shape = input.shape if input.dim() >= other.dim() else other.shape
    pairs = zip(flat(input.expand(shape).tolist()), flat(other.expand(shape).tolist()))
    return all(
        a == b or abs(a - b) <= atol + rtol * abs(b) or (equal_nan and isnan(a) and isnan(b))
        for a, b in pairs
    )


def typename(o):
    if isinstance(o, Tensor):
        return o.type()
    kind = o if isinstance(o, type) else type(o)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
