"""Collectives of Python objects: what torch.load(weights_only=True) knows, and nothing that would
run code of the sender's on the receiver's side."""

import collections
import io

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


def from_tensor(data):
    return _load(memoryview(data.numpy()).tobytes())


def _on(group, tensor):
    """Where the group's backend takes it."""
    return tensor.cuda() if group.name() == "nccl" else tensor


def _length(group, data):
    return _on(group, torch.tensor([data.numel()], dtype=torch.int64))


def all_gather_object(object_list, obj, group=None, weights_only=False):
    """Every process gets the objects of all."""
    if _outsider(group):
        return
    group = _group_or_default(group)
    if len(object_list) != group.size():
        raise ValueError(f"expected a list of {group.size()} objects, got {len(object_list)}")
    for at, value in enumerate(_gathered(to_tensor(obj), group)):
        object_list[at] = from_tensor(value)


def _gathered(data, group, root=None):
    """The bytes of all, at root or everywhere."""
    lengths = [_on(group, torch.zeros(1, dtype=torch.int64)) for _ in range(group.size())]
    all_gather(lengths, _length(group, data), group=group)
    lengths = [int(n) for n in lengths]
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
    return [part.cpu()[:n] for part, n in zip(parts, lengths)]


def gather_object(
    obj, object_gather_list=None, dst=None, group=None, group_dst=None, weights_only=False
):
    """dst gets the objects of all."""
    if _outsider(group):
        return
    group = _group_or_default(group)
    root = _peer(group, dst, group_dst, "dst")
    if group.rank() == root and (
        object_gather_list is None or len(object_gather_list) != group.size()
    ):
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    for at, value in enumerate(_gathered(to_tensor(obj), group, root)):
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
    data = to_tensor(list(object_list)) if sends else torch.empty(0, dtype=torch.uint8)
    length = _length(group, data)
    broadcast(length, group=group, group_src=root)
    data = _on(group, data if sends else torch.empty(int(length), dtype=torch.uint8))
    broadcast(data, group=group, group_src=root)
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
    parts, lengths = None, torch.zeros(group.size(), dtype=torch.int64)
    if group.rank() == root:
        data = [to_tensor(value) for value in scatter_object_input_list]
        if len(data) != group.size():
            raise ValueError(f"expected {group.size()} objects to scatter, got {len(data)}")
        lengths = torch.tensor([d.numel() for d in data], dtype=torch.int64)
        parts = []
        for d in data:
            padded = torch.zeros(int(lengths.max()), dtype=torch.uint8)
            padded[: d.numel()] = d
            parts.append(_on(group, padded))
    lengths = _on(group, lengths)
    broadcast(lengths, group=group, group_src=root)
    mine = _on(group, torch.empty(int(lengths.max()), dtype=torch.uint8))
    scatter(mine, parts, group=group, group_src=root)
    scatter_object_output_list[0] = from_tensor(mine.cpu()[: int(lengths[group.rank()])])


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
    data = to_tensor(list(object_list))
    send(_length(group, data), group=group, group_dst=to)
    send(_on(group, data), group=group, group_dst=to)


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
    data = _on(group, torch.empty(int(length), dtype=torch.uint8))
    recv(data, source, group)
    _replace(object_list, from_tensor(data.cpu()))
    return source
