"""Batches from lists of samples."""

import collections.abc
import contextlib
import copy
import sys

import tessera as torch

_NOT_COLLATED = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _is_numpy(elem):
    return type(elem).__module__ == "numpy" and type(elem).__name__ not in ("str_", "string_")


def _is_text_array(array):
    return array.dtype.kind in "SaUO"


def _rebuilt_mapping(data, new):
    """A mapping of the same class."""
    try:
        if isinstance(data, collections.abc.MutableMapping):
            made = copy.copy(data)
            made.update(new)
            return made
        return type(data)(new)
    except TypeError:  # a class that takes no dictionary
        return new


def _rebuilt_sequence(data, new):
    """A sequence of the same class."""
    try:
        if isinstance(data, collections.abc.MutableSequence):
            made = copy.copy(data)
            for i, item in enumerate(new):
                made[i] = item
            return made
        return type(data)(new)
    except TypeError:  # a class that takes no list
        return new


def default_convert(data):
    """Arrays as tensors, within collections too; all else as it is."""
    if isinstance(data, torch.Tensor):
        return data
    if _is_numpy(data):
        if hasattr(data, "__array_interface__") and getattr(data, "ndim", 0) > 0:
            return data if _is_text_array(data) else torch.as_tensor(data)
        if type(data).__name__ == "ndarray" and _is_text_array(data):
            return data
        return torch.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _rebuilt_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt_sequence(data, [default_convert(d) for d in data])
    return data


def collate(batch, *, collate_fn_map=None):
    """A batch by the functions that collate_fn_map has for the samples' types."""
    elem = batch[0]
    kind = type(elem)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known in collate_fn_map:
            if isinstance(elem, known):
                return collate_fn_map[known](batch, collate_fn_map=collate_fn_map)
    if isinstance(elem, collections.abc.Mapping):
        new = {key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in elem}
        return _rebuilt_mapping(elem, new)
    if isinstance(elem, tuple) and hasattr(elem, "_fields"):
        return kind(*(collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)))
    if isinstance(elem, collections.abc.Sequence):
        size = len(elem)
        if not all(len(other) == size for other in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        new = [collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)]
        return new if isinstance(elem, tuple) else _rebuilt_sequence(elem, new)
    raise TypeError(_NOT_COLLATED.format(kind))


def collate_tensor_fn(batch, *, collate_fn_map=None):
    return torch.stack(batch, 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    if _is_text_array(batch[0]):
        raise TypeError(_NOT_COLLATED.format(batch[0].dtype))
    return collate([torch.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    return torch.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return torch.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map = {
    torch.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _know_numpy():
    """NumPy's types join the map once a program has NumPy loaded."""
    numpy = sys.modules.get("numpy")
    if numpy is None or getattr(numpy, "ndarray", None) in (None, *default_collate_fn_map):
        return
    with contextlib.suppress(AttributeError):
        default_collate_fn_map[numpy.ndarray] = collate_numpy_array_fn
        scalars = (numpy.bool_, numpy.number, numpy.object_)
        default_collate_fn_map[scalars] = collate_numpy_scalar_fn


def default_collate(batch):
    """Tensors stacked, numbers as tensors, collections collated within; text as lists."""
    _know_numpy()
    return collate(batch, collate_fn_map=default_collate_fn_map)
