"""Collectives, over those of the core's process groups."""

import warnings

import tessera as torch

from ._groups import (
    ReduceOp,
    _group_or_default,
    _not_in_group,
    get_group_rank,
)
from ._stores import seconds

__all__ = [
    "P2POp",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "gather",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "send",
]


def _one(tensor, name):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(tensor)} instead."
        )
    return tensor


def _many(tensors, name):
    if not isinstance(tensors, (list, tuple)) or not all(
        isinstance(t, torch.Tensor) for t in tensors
    ):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(tensors)} instead."
        )
    return list(tensors)


def _op(op):
    op = int(op)
    if op >= ReduceOp.PREMUL_SUM:
        raise NotImplementedError(f"{ReduceOp(op)} is not supported")
    return op


def _outsider(group):
    if _not_in_group(group):
        warnings.warn(
            "Running a collective on global rank that does not belong to the given group.",
            stacklevel=3,
        )
        return True
    return False


def _peer(group, world_rank, group_rank, name):
    """A rank of the group, given as one of the world or of the group."""
    if world_rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both group_{name} and {name}")
    if group_rank is not None:
        return group_rank
    return get_group_rank(group, 0 if world_rank is None else world_rank)


def _done(work, async_op):
    if async_op:
        return work
    work.wait()
    return None


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """In place: every process gets the sum (or another ReduceOp) of all tensors."""
    _one(tensor, "tensor")
    if _outsider(group):
        return None
    return _done(_group_or_default(group)._all_reduce(tensor, _op(op)), async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """Like all_reduce, but only dst gets the result."""
    _one(tensor, "tensor")
    if _outsider(group):
        return None
    group = _group_or_default(group)
    root = _peer(group, dst, group_dst, "dst")
    return _done(group._reduce(tensor, root, _op(op)), async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Every process gets the tensor of src."""
    _one(tensor, "tensor")
    if _outsider(group):
        return None
    group = _group_or_default(group)
    return _done(group._broadcast(tensor, _peer(group, src, group_src, "src")), async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Every process gets the tensors of all."""
    outputs = _many(tensor_list, "tensor_list")
    _one(tensor, "tensor")
    if _outsider(group):
        return None
    group = _group_or_default(group)
    if len(outputs) != group.size():
        raise ValueError(
            f"all_gather: expected a list of {group.size()} tensors, got {len(outputs)}"
        )
    return _done(group._all_gather(outputs, tensor.contiguous()), async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """Every process gets the tensors of all, one after the other in one."""
    _one(output_tensor, "output_tensor")
    _one(input_tensor, "input_tensor")
    if _outsider(group):
        return None
    group = _group_or_default(group)
    return _done(group._all_gather([output_tensor], input_tensor.contiguous()), async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Process i gets the sum of all processes' i-th tensor."""
    _one(output, "output")
    inputs = _many(input_list, "input_list")
    if _outsider(group):
        return None
    group = _group_or_default(group)
    if len(inputs) != group.size():
        raise ValueError(
            f"reduce_scatter: expected a list of {group.size()} tensors, got {len(inputs)}"
        )
    inputs = [t.contiguous() for t in inputs]
    return _done(group._reduce_scatter(output, inputs, _op(op)), async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Process i gets the sum of all processes' i-th part."""
    _one(output, "output")
    _one(input, "input")
    if _outsider(group):
        return None
    work = _group_or_default(group)._reduce_scatter(output, [input.contiguous()], _op(op))
    return _done(work, async_op)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """dst gets the tensors of all."""
    _one(tensor, "tensor")
    if _outsider(group):
        return None
    group = _group_or_default(group)
    root = _peer(group, dst, group_dst, "dst")
    outputs = []
    if group.rank() == root:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        outputs = _many(gather_list, "gather_list")
        if len(outputs) != group.size():
            raise ValueError(f"gather: expected {group.size()} tensors, got {len(outputs)}")
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    return _done(group._gather(outputs, tensor.contiguous(), root), async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Process i gets the i-th tensor of src's list."""
    _one(tensor, "tensor")
    if _outsider(group):
        return None
    group = _group_or_default(group)
    root = _peer(group, src, group_src, "src")
    inputs = []
    if group.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        inputs = [t.contiguous() for t in _many(scatter_list, "scatter_list")]
        if len(inputs) != group.size():
            raise ValueError(f"scatter: expected {group.size()} tensors, got {len(inputs)}")
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return _done(group._scatter(tensor, inputs, root), async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Process j gets from process i the j-th tensor of its list."""
    outputs = _many(output_tensor_list, "output_tensor_list")
    inputs = [t.contiguous() for t in _many(input_tensor_list, "input_tensor_list")]
    if _outsider(group):
        return None
    return _done(_group_or_default(group)._all_to_all(outputs, inputs), async_op)


def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    """Process j gets from process i the j-th part of its rows."""
    _one(output, "output")
    _one(input, "input")
    if _outsider(group):
        return None
    work = _group_or_default(group)._all_to_all_single(
        output, input.contiguous(), output_split_sizes or [], input_split_sizes or []
    )
    return _done(work, async_op)


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Sends; the handle tells when the tensor may be written again."""
    _one(tensor, "tensor")
    if _outsider(group):
        return None
    group = _group_or_default(group)
    return group._send(tensor.contiguous(), _peer(group, dst, group_dst, "dst"), tag)


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receives; without src from whoever sends first."""
    _one(tensor, "tensor")
    if _outsider(group):
        return None
    group = _group_or_default(group)
    anybody = src is None and group_src is None
    return group._recv(tensor, -1 if anybody else _peer(group, src, group_src, "src"), tag)


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Sends, and comes back when the tensor may be written again."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receives, and gives the sender's rank."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    group = _group_or_default(group)
    source = work.source_rank()
    return group._ranks[source]


class P2POp:
    """One message for batch_isend_irecv: op is isend or irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        self.op = op
        self.tensor = _one(tensor, "tensor")
        self.group = _group_or_default(group)
        self.group_peer = _peer(self.group, peer, group_peer, "peer")
        self.peer = self.group._ranks[self.group_peer]
        self.tag = tag


def batch_isend_irecv(p2p_op_list):
    """Starts all messages, and gives their handles."""
    if not p2p_op_list or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type P2POp.")
    if any(p.group is not p2p_op_list[0].group for p in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    group, works = p2p_op_list[0].group, []
    on_gpu = all(p.tensor.is_cuda for p in p2p_op_list)
    if on_gpu:
        group._begin_batch()
    try:
        for p in p2p_op_list:
            peer = {"group_dst" if p.op is isend else "group_src": p.group_peer}
            works.append(p.op(p.tensor, group=p.group, tag=p.tag, **peer))
    finally:
        if on_gpu:
            group._end_batch()
    return works


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Waits until every process of the group is here."""
    if _outsider(group):
        return None
    work = _group_or_default(group)._barrier(device_ids is not None)
    if timeout is not None and not async_op:
        work.wait(timeout)
        return None
    return _done(work, async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """A barrier that names the ranks which do not come."""
    if _outsider(group):
        return
    group = _group_or_default(group)
    before = group._timeout
    if timeout is not None:
        group._set_timeout(seconds(timeout))
    try:
        group._barrier(False).wait()
    finally:
        group._set_timeout(before)


class _AllWork:
    """Handles of several collectives as one."""

    def __init__(self, works):
        self._works = works

    def wait(self, timeout=None):
        return all([work.wait(timeout) for work in self._works])

    def is_completed(self):
        return all(work.is_completed() for work in self._works)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """all_gather of several tensors."""
    inputs = _many(input_tensor_list, "input_tensor_list")
    if _outsider(group):
        return None
    works = [
        all_gather(outputs, tensor, group, async_op=True)
        for outputs, tensor in zip(output_tensor_lists, inputs, strict=True)
    ]
    return _done(_AllWork(works), async_op)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """all_reduce of several tensors."""
    _many(tensors, "tensors")
    if _outsider(group):
        return None
    group = _group_or_default(group)
    return _done(_AllWork([group._all_reduce(t, _op(op)) for t in tensors]), async_op)
