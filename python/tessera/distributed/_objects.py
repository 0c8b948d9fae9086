"""Collectives of Python objects: what torch.load(weights_only=True) knows, and nothing that would
run code of the sender's on the receiver's side."""

import collections
import io
import sys

import tessera as torch

from .. import serialization
from ._collectives import _outsider, _peer, all_gather, broadcast, gather, recv, scatter, send
from ._groups import _group_or_default

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]

_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.Tensor, torch.Size, torch.dtype)


def _is_plain(value):
    """Is it made of what every reader knows?"""
    if type(value) in (list, tuple, set, frozenset):
        return all(_is_plain(v) for v in value)
    if type(value) in (dict, collections.OrderedDict):
        return all(_is_plain(k) and _is_plain(v) for k, v in value.items())
    return type(value) in _PLAIN


def _load(data):
    return serialization.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def to_tensor(value):
    """The bytes of an object; raises TypeError for what the others could not read."""
    file = io.BytesIO()
    try:
        value = _without_numpy(value)
        serialization.save(value, file)
        if not _is_plain(value):
            _load(file.getvalue())
    except Exception as error:
        raise TypeError(
            f"a {type(value).__module__}.{type(value).__qualname__} cannot be sent to other "
            "processes: objects go without pickle, as torch.load(weights_only=True) reads them "
            "(numbers, text, containers, tensors, NumPy arrays). Send its parts instead, or its "
            f"state_dict. ({error})"
        ) from error
    return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)


# Stands for a NumPy array or scalar: its dtype as NumPy writes it, its shape and its bytes. No
# function of NumPy's is named in the data, and none is called with what a sender wrote but these.
_NUMPY = "tessera.distributed.numpy"


def _without_numpy(value):
    """The same with plain values in place of arrays and scalars of NumPy."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return kind(_without_numpy(v) for v in value)
    if kind in (dict, collections.OrderedDict):
        return kind((_without_numpy(k), _without_numpy(v)) for k, v in value.items())
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic)):
        return value
    if value.dtype.hasobject:
        raise TypeError("an array of Python objects")
    if type(value) is not numpy.ndarray and isinstance(value, numpy.ndarray):
        raise TypeError(f"a subclass of numpy.ndarray, {type(value).__qualname__}")
    order = "F" if value.flags.fnc else "C"
    is_array = isinstance(value, numpy.ndarray)
    shape = tuple(int(n) for n in value.shape)
    descr = numpy.lib.format.dtype_to_descr(value.dtype)
    return (_NUMPY, is_array, descr, shape, order, value.tobytes(order))


def _with_numpy(value):
    """The inverse of _without_numpy."""
    kind = type(value)
    if kind is tuple and len(value) == 6 and value[0] == _NUMPY:
        import numpy

        _, is_array, descr, shape, order, data = value
        dtype = numpy.lib.format.descr_to_dtype(descr)
        if dtype.hasobject:
            raise ValueError("the data of another process names an array of Python objects")
        array = numpy.frombuffer(bytearray(data), dtype).reshape(shape, order=order)
        return array if is_array else array[()]
    if kind in (list, tuple, set, frozenset):
        return kind(_with_numpy(v) for v in value)
    if kind in (dict, collections.OrderedDict):
        return kind((_with_numpy(k), _with_numpy(v)) for k, v in value.items())
    return value


def from_tensor(data):
    return _with_numpy(_load(memoryview(data.numpy()).tobytes()))


# Note [Errors of one rank]
# The ranks first receive the lengths of each other's data. A negative length stands for an error:
# its text follows instead of data, and all ranks raise. Otherwise the failing rank would raise
# alone while the other ranks wait for it.


def _packed(make):
    """The bytes of make(), or its error's text, and the length to announce with the error."""
    try:
        data = make()
        return data, data.numel(), None
    except Exception as error:
        text = f"{type(error).__name__}: {error}".encode()
        return torch.frombuffer(bytearray(text), dtype=torch.uint8), -len(text), error


def _raise(error, rank, data):
    if error is not None:
        raise error
    text = memoryview(data.cpu().numpy()).tobytes().decode()
    raise RuntimeError(f"rank {rank} could not send its object: {text}")


def _on(group, tensor):
    """Where the group's backend takes it."""
    return tensor.cuda() if group.name() == "nccl" else tensor


def _length(group, length):
    return _on(group, torch.tensor([length], dtype=torch.int64))


def _checked_object(obj, items, size, message):
    """The bytes of an object; raises where the list for all of them has another length."""
    if items is None or len(items) != size:
        raise ValueError(message)
    return to_tensor(obj)


def all_gather_object(object_list, obj, group=None, weights_only=False):
    """Every process gets the objects of all."""
    if _outsider(group):
        return
    group = _group_or_default(group)
    message = f"expected a list of {group.size()} objects, got {len(object_list)}"
    packed = _packed(lambda: _checked_object(obj, object_list, group.size(), message))
    for at, value in enumerate(_gathered(packed, group)):
        object_list[at] = from_tensor(value)


def _gathered(packed, group, root=None):
    """The bytes of all, at root or everywhere. Raises on all ranks if one of them has an error."""
    data, length, error = packed
    lengths = [_on(group, torch.zeros(1, dtype=torch.int64)) for _ in range(group.size())]
    all_gather(lengths, _length(group, length), group=group)
    lengths = [int(n) for n in lengths]
    failed = next((r for r, n in enumerate(lengths) if n < 0), None)
    if failed is not None:
        root = None
        if length >= 0:
            data = data[:0]
        lengths = [max(0, -n) for n in lengths]
    most = max(lengths)
    mine = torch.zeros(most, dtype=torch.uint8)
    mine[: data.numel()] = data
    parts = []
    if root in (None, group.rank()):
        parts = [_on(group, torch.empty(most, dtype=torch.uint8)) for _ in lengths]
    if root is None:
        all_gather(parts, _on(group, mine), group=group)
    else:
        gather(_on(group, mine), parts or None, group=group, group_dst=root)
    if failed is not None:
        _raise(error, group._ranks[failed], parts[failed][: lengths[failed]])
    return [part.cpu()[:n] for part, n in zip(parts, lengths)]


def gather_object(
    obj, object_gather_list=None, dst=None, group=None, group_dst=None, weights_only=False
):
    """dst gets the objects of all."""
    if _outsider(group):
        return
    group = _group_or_default(group)
    root = _peer(group, dst, group_dst, "dst")
    message = "Argument ``gather_list`` must be specified on destination rank."
    items = object_gather_list if group.rank() == root else range(group.size())
    packed = _packed(lambda: _checked_object(obj, items, group.size(), message))
    for at, value in enumerate(_gathered(packed, group, root)):
        object_gather_list[at] = from_tensor(value)


def broadcast_object_list(
    object_list, src=None, group=None, device=None, group_src=None, weights_only=False
):
    """Every process gets the objects of src."""
    if _outsider(group):
        return
    group = _group_or_default(group)
    root = _peer(group, src, group_src, "src")
    sends = group.rank() == root
    data, length, error = torch.empty(0, dtype=torch.uint8), 0, None
    if sends:
        data, length, error = _packed(lambda: to_tensor(list(object_list)))
    length = _length(group, length)
    broadcast(length, group=group, group_src=root)
    size = int(length)
    data = _on(group, data if sends else torch.empty(abs(size), dtype=torch.uint8))
    broadcast(data, group=group, group_src=root)
    if size < 0:
        _raise(error, group._ranks[root], data)
    if not sends:
        _replace(object_list, from_tensor(data.cpu()))


def _replace(object_list, values):
    if len(values) != len(object_list):
        raise ValueError(f"{len(values)} objects were sent, and the list has {len(object_list)}")
    object_list[:] = values


def scatter_object_list(
    scatter_object_output_list,
    scatter_object_input_list=None,
    src=None,
    group=None,
    group_src=None,
    weights_only=False,
):
    """Process i gets the i-th object of src's list, as the first of its own."""
    if _outsider(group):
        return
    group = _group_or_default(group)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    root = _peer(group, src, group_src, "src")
    parts, data, error = None, None, None
    lengths = torch.zeros(group.size(), dtype=torch.int64)
    if group.rank() == root:
        data, length, error = _packed(
            lambda: _to_scatter(scatter_object_input_list, group, lengths)
        )
        if error is not None:
            lengths[:] = length
        else:
            parts = [_on(group, part) for part in data.reshape(group.size(), -1)]
    lengths = _on(group, lengths)
    broadcast(lengths, group=group, group_src=root)
    sizes = lengths.tolist()
    if min(sizes) < 0:
        text = data if group.rank() == root else torch.empty(-sizes[0], dtype=torch.uint8)
        text = _on(group, text)
        broadcast(text, group=group, group_src=root)
        _raise(error, group._ranks[root], text)
    mine = _on(group, torch.empty(max(sizes), dtype=torch.uint8))
    scatter(mine, parts, group=group, group_src=root)
    scatter_object_output_list[0] = from_tensor(mine.cpu()[: sizes[group.rank()]])


def _to_scatter(objects, group, lengths):
    """The objects' bytes, padded to one length, one after the other. Fills in the lengths."""
    if objects is None or len(objects) != group.size():
        count = "no list" if objects is None else len(objects)
        raise ValueError(f"expected {group.size()} objects to scatter, got {count}")
    data = [to_tensor(value) for value in objects]
    lengths[:] = torch.tensor([d.numel() for d in data], dtype=torch.int64)
    padded = torch.zeros(len(data), int(lengths.max()), dtype=torch.uint8)
    for row, d in zip(padded, data):
        row[: d.numel()] = d
    return padded.reshape(-1)


def send_object_list(
    object_list,
    dst=None,
    group=None,
    device=None,
    group_dst=None,
    use_batch=False,
    weights_only=False,
):
    """Sends objects to one process."""
    if _outsider(group):
        return
    group = _group_or_default(group)
    to = _peer(group, dst, group_dst, "dst")
    data, length, error = _packed(lambda: to_tensor(list(object_list)))
    send(_length(group, length), group=group, group_dst=to)
    send(_on(group, data), group=group, group_dst=to)
    if error is not None:
        raise error


def recv_object_list(
    object_list,
    src=None,
    group=None,
    device=None,
    group_src=None,
    use_batch=False,
    weights_only=False,
):
    """Receives objects from one process, and gives its rank."""
    if _outsider(group):
        return -1
    group = _group_or_default(group)
    length = _on(group, torch.zeros(1, dtype=torch.int64))
    source = recv(length, src, group, group_src=group_src)
    size = int(length)
    data = _on(group, torch.empty(abs(size), dtype=torch.uint8))
    recv(data, source, group)
    if size < 0:
        _raise(None, source, data)
    _replace(object_list, from_tensor(data.cpu()))
    return source
