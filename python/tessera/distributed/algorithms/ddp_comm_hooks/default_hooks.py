"""The average of a bucket as it is, or carried in half floats. `process_group`: None is all."""

import tessera as torch

from ... import _groups


def _average(process_group, bucket, dtype=None):
    group = _groups._group_or_default(process_group)
    buffer = bucket.buffer()
    sent = buffer if dtype is None else buffer.to(dtype)
    sent = sent.div_(group.size()) if sent is buffer else sent.div(group.size())
    work = group._all_reduce(sent, int(_groups.ReduceOp.SUM))
    return work.get_future().then(lambda _: sent if dtype is None else buffer.copy_(sent))


def allreduce_hook(process_group, bucket):
    return _average(process_group, bucket)


def fp16_compress_hook(process_group, bucket):
    return _average(process_group, bucket, torch.float16)


def bf16_compress_hook(process_group, bucket):
    return _average(process_group, bucket, torch.bfloat16)


def _compressed(hook, dtype):
    def compressed(state, bucket):
        buffer = bucket.buffer()
        whole, bucket._buffer = buffer, buffer.to(dtype)

        def widen(future):
            value = future.value()
            value = value[0] if isinstance(value, (list, tuple)) else value
            return whole.copy_(value)

        return hook(state, bucket).then(widen)

    return compressed


def fp16_compress_wrapper(hook):
    """A hook that works on half floats."""
    return _compressed(hook, torch.float16)


def bf16_compress_wrapper(hook):
    return _compressed(hook, torch.bfloat16)
