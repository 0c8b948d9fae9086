"""Collectives that autograd goes through: each gives a new tensor, and its gradient is a collective
too, which all ranks have to take part in."""

import tessera as torch
from tessera.autograd import Function

from .. import _collectives as plain
from .._groups import ReduceOp, get_rank, get_world_size

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _empty(like, count):
    return [torch.empty_like(like) for _ in range(count)]


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, tensor, op, group):
        ctx.op, ctx.group = op, group
        tensor = tensor.contiguous().clone()
        plain.all_reduce(tensor, op, group)
        return tensor

    @staticmethod
    def backward(ctx, grad):
        if ctx.op not in (ReduceOp.SUM, ReduceOp.AVG):
            raise RuntimeError(f"all_reduce: no gradient of {ReduceOp(ctx.op)}")
        return _AllReduce.apply(grad, ctx.op, ctx.group), None, None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, tensor, src, group):
        ctx.src, ctx.group = src, group
        tensor = tensor.contiguous().clone()
        plain.broadcast(tensor, src, group)
        return tensor

    @staticmethod
    def backward(ctx, grad):
        grad = _Reduce.apply(grad, ctx.src, ReduceOp.SUM, ctx.group)
        return grad if get_rank() == ctx.src else torch.zeros_like(grad), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx, tensor, dst, op, group):
        ctx.dst, ctx.group = dst, group
        tensor = tensor.contiguous().clone()
        plain.reduce(tensor, dst, op, group)
        return tensor

    @staticmethod
    def backward(ctx, grad):
        return _Broadcast.apply(grad, ctx.dst, ctx.group), None, None, None


class _Gather(Function):
    @staticmethod
    def forward(ctx, tensor, dst, group):
        ctx.dst, ctx.group = dst, group
        parts = [torch.zeros_like(tensor) for _ in range(get_world_size(group))]
        here = get_rank() == dst
        plain.gather(tensor.contiguous(), parts if here else None, dst, group)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *grads):
        return _Scatter.apply(ctx.dst, ctx.group, *grads), None, None


class _Scatter(Function):
    @staticmethod
    def forward(ctx, src, group, *tensors):
        ctx.src, ctx.group = src, group
        out = torch.empty_like(tensors[0]).contiguous()
        here = get_rank() == src
        plain.scatter(out, [t.contiguous() for t in tensors] if here else None, src, group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return None, None, *_Gather.apply(grad, ctx.src, ctx.group)


class _AllGather(Function):
    @staticmethod
    def forward(ctx, tensor, group):
        ctx.group = group
        parts = _empty(tensor.contiguous(), get_world_size(group))
        plain.all_gather(parts, tensor.contiguous(), group)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *grads):
        return _ReduceScatter.apply(ReduceOp.SUM, ctx.group, *grads), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, op, group, *tensors):
        ctx.op, ctx.group = op, group
        out = torch.empty_like(tensors[0]).contiguous()
        plain.reduce_scatter(out, [t.contiguous() for t in tensors], op, group)
        return out

    @staticmethod
    def backward(ctx, grad):
        if ctx.op != ReduceOp.SUM:
            raise RuntimeError(f"reduce_scatter: no gradient of {ReduceOp(ctx.op)}")
        return None, None, *_AllGather.apply(grad, ctx.group)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, shapes, *tensors):
        ctx.group, ctx.shapes = group, [t.shape for t in tensors]
        like = tensors[0]
        out = [torch.empty(s, dtype=like.dtype, device=like.device) for s in shapes]
        plain.all_to_all(out, [t.contiguous() for t in tensors], group)
        return tuple(out)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *grads)


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """The sum over all ranks; its gradient is the sum of theirs."""
    return _AllReduce.apply(tensor, op, group)


def broadcast(tensor, src, group=None):
    """src's tensor; the gradients of all add up there."""
    return _Broadcast.apply(tensor, src, group)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    """The sum over all ranks, at dst."""
    return _Reduce.apply(tensor, dst, op, group)


def gather(tensor, dst=0, group=None):
    """A tuple of all ranks' tensors at dst, of zeros elsewhere."""
    return _Gather.apply(tensor, dst, group)


def scatter(tensors, src=0, group=None):
    """The tensor for this rank out of src's list."""
    return _Scatter.apply(src, group, *tensors)


def all_gather(tensor, group=None):
    """A tuple of all ranks' tensors."""
    return _AllGather.apply(tensor, group)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """The sum over all ranks of this rank's tensor in their lists. `output` is not written."""
    return _ReduceScatter.apply(op, group, *input_list)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """What the ranks have for this one; shapes are those of output_tensor_list."""
    return _AllToAll.apply(group, [t.shape for t in output_tensor_list], *input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """Rows of all ranks for this one; the shape is that of output."""
    size = get_world_size(group)
    rows_in = input_split_sizes or [input.shape[0] // size] * size
    rows_out = output_split_sizes or [output.shape[0] // size] * size
    shapes = [(n, *output.shape[1:]) for n in rows_out]
    return torch.cat(_AllToAll.apply(group, shapes, *input.split(list(rows_in))))
