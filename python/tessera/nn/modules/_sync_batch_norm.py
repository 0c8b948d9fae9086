"""Batch normalisation over the batches of several processes."""

import tessera as torch


class SyncBatchNormFunction(torch.autograd.Function):
    """Each rank's mean, squares and count are gathered, and what gradients need is added up."""

    @staticmethod
    def forward(ctx, x, weight, bias, running_mean, running_var, eps, momentum, group):
        from ... import distributed as dist

        channels = x.size(1)
        count = x.numel() // channels if channels else 0
        dims = [d for d in range(x.dim()) if d != 1]
        wide = x.double() if x.dtype == torch.float64 else x.float()
        if count:
            var, mean = torch.var_mean(wide, dims, correction=0)
        else:
            var = mean = wide.new_zeros(channels)
        own = torch.cat([mean, var * count, mean.new_full((1,), count)])
        every = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
        dist.all_gather(every, own, group=group)
        every = torch.stack(every)
        counts = every[:, -1:]
        total = counts.sum()
        means, squares = every[:, :channels], every[:, channels:-1]
        mean = (means * counts).sum(0) / total
        var = (squares.sum(0) + ((means - mean).square() * counts).sum(0)) / total
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean * momentum)
            running_var.mul_(1 - momentum).add_(var * (momentum * total / (total - 1)))
        scale = (var + eps).rsqrt()
        shape = [1, -1] + [1] * (x.dim() - 2)
        out = (wide - mean.view(shape)) * scale.view(shape)
        if weight is not None:
            out = out * weight.view(shape) + bias.view(shape)
        ctx.save_for_backward(x, weight, mean, scale, total)
        ctx.group, ctx.dims, ctx.shape = group, dims, shape
        return out.to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        from ... import distributed as dist

        x, weight, mean, scale, total = ctx.saved_tensors
        shape = ctx.shape
        grad = grad.to(mean.dtype)
        centred = x.to(mean.dtype) - mean.view(shape)
        sums = grad.sum(ctx.dims)
        products = (grad * centred).sum(ctx.dims)
        both = torch.cat([sums, products])
        dist.all_reduce(both, group=ctx.group)
        mean_grad, mean_product = (both / total).chunk(2)
        back = grad - mean_grad.view(shape) - centred * (scale * scale * mean_product).view(shape)
        back = back * scale.view(shape)
        for_weight = for_bias = None
        if weight is not None:
            back = back * weight.view(shape)
            for_weight = (products * scale).to(weight.dtype)
            for_bias = sums.to(weight.dtype)
        return back.to(x.dtype), for_weight, for_bias, None, None, None, None, None
