"""Named kernels over dtypes, layouts and the lengths at which they change their form."""

from common import (
    COLUMNS,
    DEVICE,
    FEW_WIDTHS,
    FLOATS,
    ODD_WIDTHS,
    WIDTHS,
    back,
    look,
    number,
    station,
    tensor,
)

import tessera as torch
from tessera.nn import functional as F

BOOL, INT, LONG, DOUBLE = torch.bool, torch.int32, torch.int64, torch.float64
# So few rows that they are cut, an ordinary batch, more rows than blocks.
ROWS = (1, 64, 16384)
NORMALISED = (
    *((64, c) for c in COLUMNS),
    *((rows, c) for rows in (2, 3, 4, 5, 8, 12, 16, 24, 32, 128, 256, 1024) for c in (10, 64, 500)),
    *((16, 16, side, side) for side in (2, 3, 5, 6, 7, 9, 10, 12, 14, 15, 20, 30, 33, 45, 50)),
    *((8, c, 10, 10) for c in (1, 2, 3, 4, 5, 6, 9, 10, 12, 20, 33, 36, 40, 100)),
    (32, 8, 16, 16), (32, 64, 32, 32), (8, 64, 56, 56), (8, 512, 7, 7), (16, 16, 28, 28),
    (64, 6, 5, 5), (4, 8, 8, 8, 8), (8, 16, 100), (32, 64), (32, 30), (128, 512), (2, 3, 224, 224),
    (64, 512, 7, 7), (256, 16, 7, 7), (128, 6, 13, 13),
)  # fmt: skip
SORTED = (
    2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 500, 512, 1000, 1024, 2000, 2048, 4000,
    4096, 8192, 10000, 32000, 50257, 1 << 20,
)  # fmt: skip
# Channels in and out, the window, its step, the edge, groups, the image's side.
CONVOLUTIONS = (
    (3, 8, 3, 1, 1, 1, 16), (8, 16, 3, 2, 1, 1, 16), (3, 64, 7, 2, 3, 1, 64),
    (64, 64, 1, 1, 0, 1, 14), (16, 16, 3, 1, 1, 16, 14), (16, 16, 3, 2, 1, 16, 14),
    (32, 32, 5, 1, 2, 32, 14), (1, 6, 5, 1, 2, 1, 28), (6, 16, 5, 1, 0, 1, 14),
    (1, 10, 5, 1, 0, 1, 28), (32, 32, 3, 1, 1, 4, 14), (16, 33, 3, 1, 0, 1, 9),
)  # fmt: skip


def rows_for(n):
    return [r for r in ROWS if r * n <= 1 << 28] or [1]


@station
def softmax():
    for dtype in (*FLOATS, DOUBLE):
        for n in WIDTHS if dtype != DOUBLE else FEW_WIDTHS:
            for r in rows_for(n):
                for f in (torch.softmax, torch.log_softmax):
                    x = tensor(r, n, dtype=dtype, grad=True)
                    back(f(x, -1), x)
        for n in ODD_WIDTHS if dtype != DOUBLE else ():
            for f in (torch.softmax, torch.log_softmax):
                x = tensor(64, n, dtype=dtype, grad=True)
                back(f(x, -1), x)
        for f in (torch.softmax, torch.log_softmax):
            for shape in ((64, 10), (8, 21, 32, 32), (4, 1000, 7)):
                x = tensor(*shape, dtype=dtype, grad=True)
                back(f(x, 1 if len(shape) > 2 else 0), x)
            x = tensor(8, 12, 64, 64, dtype=dtype)
            look(f(x.transpose(1, 2), -1), f(x, -1, dtype=torch.float32))


@station
def entropy():
    for dtype in FLOATS:
        for n in WIDTHS:
            for r in rows_for(n):
                target = number(r)
                for reduction in ("mean", "sum", "none") if r == 64 else ("mean",):
                    x = tensor(r, n, dtype=dtype, grad=True)
                    back(F.cross_entropy(x, target, reduction=reduction), x)
                    with torch.autocast(DEVICE, dtype=torch.bfloat16):
                        back(F.cross_entropy(x, target, reduction=reduction), x)
        x, weight = tensor(64, 10, dtype=dtype, grad=True), tensor(10, dtype=dtype)
        target = number(64)
        back(F.cross_entropy(x, target, weight=weight), x)
        back(F.cross_entropy(x, target, label_smoothing=0.1), x)
        back(F.cross_entropy(x, torch.empty_like(x)), x)
        wide = tensor(64, 1000, dtype=dtype, grad=True)
        for reduction in ("mean", "sum", "none"):
            back(F.nll_loss(wide, target, reduction=reduction), wide)
            back(F.nll_loss(x, target, reduction=reduction), x)
            back(F.nll_loss(x, target, weight=weight, reduction=reduction), x)
            planes = tensor(4, 21, 32, 32, dtype=dtype, grad=True)
            back(F.cross_entropy(planes, number(4, 32, 32), reduction=reduction), planes)
            back(F.nll_loss(planes, number(4, 32, 32), reduction=reduction), planes)


@station
def norms():
    for dtype in FLOATS:
        # Autocast has them in float32 whatever the width; halves by themselves are rare.
        more = (*ODD_WIDTHS, *(2 * n for n in ODD_WIDTHS)) if dtype == torch.float32 else ()
        for n in (*WIDTHS, *more):
            if n > 16384:
                continue
            for r in rows_for(n)[-2:]:
                for affine in (True, False) if r == 64 and n in FEW_WIDTHS else (True,):
                    x = tensor(r, n, dtype=dtype, grad=True)
                    w = tensor(n, dtype=dtype, grad=True) if affine else None
                    b = tensor(n, dtype=dtype, grad=True) if affine else None
                    y = F.layer_norm(x, (n,), w, b)
                    back(y, x, *((w, b) if affine else ()))
                    if n >= 128 and n % 64 == 0:  # only language models have it
                        back(F.rms_norm(x, (n,), w), x, *((w,) if affine else ()))
        for channels, side, groups in ((32, 16, 8), (64, 56, 32), (6, 7, 3), (512, 7, 32)):
            x = tensor(8, channels, side, side, dtype=dtype, grad=True)
            w, b = (tensor(channels, dtype=dtype, grad=True) for _ in range(2))
            back(F.group_norm(x, groups, w, b), x, w, b)
            back(F.instance_norm(x, weight=w, bias=b), x, w, b)
            back(F.instance_norm(x), x)


@station
def batch_norms():
    for dtype in FLOATS:
        for mixed in (False, True) if dtype != torch.float32 else (False,):
            kept = torch.float32 if mixed else dtype
            for shape in NORMALISED:
                for last in (False, True):
                    if last and len(shape) != 4:
                        continue
                    x = tensor(*shape, dtype=dtype)
                    if last:
                        x = x.to(memory_format=torch.channels_last)
                    x.requires_grad_()
                    c = shape[1]
                    w, b = (tensor(c, dtype=kept, grad=True) for _ in range(2))
                    mean, var = (tensor(c, dtype=kept) for _ in range(2))
                    back(F.batch_norm(x, mean, var, w, b, training=True), x, w, b)
                    back(F.batch_norm(x, mean, var, w, b, training=False), x, w, b)
                    back(F.batch_norm(x, None, None, training=True), x)


@station
def reductions():
    for dtype in FLOATS:
        for n in WIDTHS:
            for r in rows_for(n):
                x = tensor(r, n, dtype=dtype)
                look(x.sum(-1), x.mean(-1))
                if n in FEW_WIDTHS:
                    look(x.amax(-1))
                    look(x.var(-1), x.std(0))
                if r > 1:
                    look(x.sum(0))
                    if n in FEW_WIDTHS:
                        look(x.mean(0))
            look(tensor(n, dtype=dtype).sum(), tensor(n, dtype=dtype).mean())
            if n <= 1024:
                mask = tensor(64, n, dtype=BOOL)
                look(mask.any(-1), mask.all(-1), mask.sum(-1))
        for shape in ((4, 3, 32, 32), (32, 64, 16, 16), (8, 256, 14, 14), (16, 5, 7, 7),
                      (8, 128, 768), (4, 12, 64, 64), (2, 3, 5), (32, 8, 16, 16)):  # fmt: skip
            x = tensor(*shape, dtype=dtype)
            for dims in (
                (0,),
                (1,),
                (0, 1),
                (1, 2),
                (0, 2),
                (0, 2, 3),
                (2, 3),
                (-1, -2),
                (0, 1, 2),
            ):
                if max(dims) < len(shape):
                    look(x.sum(dims), x.mean(dims))
            look(x.amax(1), x.amin(1), x.sum(1, dtype=torch.float32))
    for dtype in (*FLOATS, DOUBLE, LONG, INT, BOOL):
        for n in (10, 1000, 1024, 100000, 1 << 22) if dtype in FLOATS else (10, 1000, 1 << 20):
            for x in (tensor(n, dtype=dtype), tensor(64, n, dtype=dtype)):
                look(x.sum())
                look(x.any(), x.all(), torch.count_nonzero(x), x.sum(-1))
                if dtype == BOOL:
                    look(x.any(-1), x.all(-1))
                    continue
                look(x.max(), x.min(), x.amax(), x.amax(-1))
                if n <= 1000:
                    look(x.prod(), x.prod(-1), x.amin(-1))
                if dtype.is_floating_point:
                    look(x.mean(), x.norm(), x.norm(dim=-1), x.std(), x.var(), x.std(-1))
                    look(x.var(-1), torch.var_mean(x, -1), torch.var_mean(x), x.logsumexp(-1))
                    look(x.norm(p=1), x.norm(p=float("inf")), x.nansum(), x.isfinite().all())
                    look(F.normalize(x, dim=-1), x.std(0), x.var(0), x.mean(-1), x.abs().max())
                    look(torch.linalg.vector_norm(x), torch.logsumexp(x, 0))


@station
def columns_and_totals():
    for dtype in FLOATS:
        for n in COLUMNS:
            for r in (8, 64, 16384):
                x = tensor(r, n, dtype=dtype)
                look(x.sum(0), x.mean(0), x.amax(0), x.var(0))
        for power in range(25):  # as many parts as there are ways to put them together
            x = tensor(1 << power, dtype=dtype)
            look(x.sum(), x.mean(), x.amax(), x.norm(), x.amin(), x.var())
        for n in ODD_WIDTHS:
            for r in (1, 64, 16384):
                x = tensor(r, n, dtype=dtype)
                look(x.sum(-1), x.mean(-1), x.argmax(-1) if r == 64 else x)


@station
def arguments():
    for dtype in (*FLOATS, LONG):
        for n in FEW_WIDTHS:
            for r in (1, 64, 16384) if n <= 128 else (1, 64):
                x = tensor(r, n, dtype=dtype)
                look(x.argmax(-1), x.max(-1) if r == 64 else x)
            x = tensor(64, n, dtype=dtype)
            if n in (10, 1000):
                look(x.argmax(), x.argmin(-1), x.min(-1), x.argmax(0))


@station
def scans():
    for dtype in (*FLOATS, DOUBLE, LONG, INT, BOOL):
        for n in (
            2,
            5,
            8,
            10,
            12,
            16,
            32,
            50,
            64,
            100,
            128,
            256,
            512,
            1000,
            1024,
            4096,
            100000,
            1 << 20,
        ):
            for r in (1, 64) if n <= 4096 else (1,):
                look(tensor(r, n, dtype=dtype).cumsum(-1))
        for n in (4, 8, 16, 32, 64, 128, 1000, 10000):
            for across in (1, 2, 8, 16, 64):
                look(tensor(n, across, dtype=dtype).cumsum(0))
        look(tensor(8, 100, 64, dtype=dtype).cumsum(1))
    for n in (10, 100, 1000):
        x = tensor(64, n, grad=True)
        back(x.cumsum(-1), x)
        look(x.cumprod(-1), x.cummax(-1), x.logcumsumexp(-1), tensor(n).cumprod(0))


@station
def sorting():
    for dtype in (*FLOATS, LONG, INT):
        for n in SORTED:
            for r in (1, 64) if n <= 1 << 17 else (1,):
                x = tensor(r, n, dtype=dtype)
                look(x.sort(-1), x.argsort(descending=True))
                for k in (1, 5, 10, 50, 100):
                    if k < n:
                        look(x.topk(k))
                look(x.median(), x.median(-1), x.kthvalue(1, -1))
    for n in (10, 1000, 100000):
        x = tensor(n)
        look(x.sort(), x.quantile(0.5), torch.bincount(number(n), minlength=10), x.histc(10))
        look(torch.searchsorted(x, tensor(100)), torch.bucketize(tensor(100), x))
        look(torch.isin(number(n), number(10)))


def grad_of(f, *inputs):
    back(f(*inputs), *(x for x in inputs if x.dtype.is_floating_point))


@station
def indexing():
    for dtype in (*FLOATS, LONG, BOOL, DOUBLE):
        real = dtype.is_floating_point
        for shape in ((100, 64), (1000, 10), (50, 3), (64, 3, 32, 32), (60, 28, 28), (8, 128, 768),
                      (1000,), (7, 5)):  # fmt: skip
            x = tensor(*shape, dtype=dtype, grad=real)
            i = number(20)
            look(x[number(1)], x[number(1, 1)])
            for dim in range(min(2, len(shape))):
                y = x.index_select(dim, i)
                back(y, x) if real else look(y)
            y = x[i]
            back(y, x) if real else look(y)
            if len(shape) > 1:
                y = x[i, number(20)]
                back(y, x) if real else look(y)
                y = x[:, number(3)]
                back(y, x) if real else look(y)
                g = number(*shape[:-1], 1)
                y = x.gather(-1, g)
                back(y, x) if real else look(y)
                y = x.gather(1, number(shape[0], 2, *shape[2:]))
                back(y, x) if real else look(y)
                z = tensor(*shape, dtype=dtype)
                look(z.scatter(-1, g, torch.empty_like(g, dtype=dtype)), z.scatter(-1, g, 1))
                if dtype != BOOL:
                    values = torch.empty_like(g, dtype=dtype)
                    look(z.scatter_add(-1, g, values), z.scatter_reduce(-1, g, values, "amax"))
                z[i, number(20)] = 0
                look(z)
            z = tensor(*shape, dtype=dtype)
            z[i] = 0
            z[i] = tensor(20, *shape[1:], dtype=dtype)
            look(z, z.index_fill(0, i, 0), z.index_copy(0, number(2), z[:2]))
            if dtype != BOOL:
                look(z.index_add(0, number(2), z[:2]))
                z.index_put_((i,), torch.ones((), dtype=dtype, device=DEVICE), accumulate=True)
                look(z)
            look(z.flip(0), z.roll(1, 0), torch.take_along_dim(z, number(*shape), 0))
    for dtype in FLOATS:
        for width in (8, 10, 32, 64, 100, 128, 256, 300, 384, 512, 768, 1024, 4096):
            table = tensor(1000, width, dtype=dtype, grad=True)
            for index in (
                number(1),
                number(32),
                number(4, 128),
                number(16, 1024),
                number(4, 128, dtype=INT),
            ):
                back(F.embedding(index, table), table)
                back(F.embedding(index, table, padding_idx=0), table)
            back(F.embedding_bag(number(32, 5), table), table)
            back(F.embedding_bag(number(32, 5), table, mode="sum"), table)


@station
def transposes():
    """Copies through tiles: of vectors, of single elements, and of more than a cache holds."""
    for dtype in (*FLOATS, DOUBLE, LONG, BOOL, torch.int32, torch.uint8):
        for shape in ((64, 64), (65, 63), (2, 64, 64), (2, 65, 63), (4096, 2048), (2, 2048, 2048)):
            x = tensor(*shape, dtype=dtype).mT
            look(x.contiguous(), x.to(torch.float32, memory_format=torch.contiguous_format))


@station
def joining():
    for dtype in (*FLOATS, LONG, BOOL, DOUBLE):
        for shape in ((64, 10), (64, 64), (8, 3, 16, 16), (8, 32, 28, 28), (1000,), (4, 12, 7, 64),
                      (1, 1), (5, 3)):  # fmt: skip
            a, b = tensor(*shape, dtype=dtype), tensor(*shape, dtype=dtype)
            for dim in range(len(shape)):
                look(torch.cat((a, b), dim), torch.cat((a, b, a), dim))
            look(torch.stack((a, b)), torch.stack((a, b), -1), torch.cat((a[:1], b)))
            look(torch.stack([a] * 32) if a.numel() < 5000 else a, torch.cat((a.mT, b.mT)))\
                if len(shape) > 1 else None  # fmt: skip
            look(a.repeat(2, *[1] * (len(shape) - 1)), a.repeat_interleave(2, 0))
            look(F.pad(a, (1, 1)), F.pad(a, (0, 0, 1, 1)) if len(shape) > 1 else a)
            look(torch.tril(a) if len(shape) > 1 else a, torch.triu(a) if len(shape) > 1 else a)
        look(torch.cat((tensor(64, 10, dtype=dtype), tensor(64, 3, dtype=dtype)), 1))


@station
def making():
    for dtype in (*FLOATS, DOUBLE):
        x = tensor(1000, dtype=dtype)
        look(x.uniform_(), x.normal_(), x.bernoulli_(0.5), x.exponential_(), torch.rand_like(x))
        look(torch.bernoulli(x), torch.poisson(x))
        look(torch.normal(0.0, 1.0, (100,), dtype=dtype, device=DEVICE))
        look(torch.linspace(0, 1, 100, dtype=dtype, device=DEVICE))
        look(torch.logspace(0, 1, 100, dtype=dtype, device=DEVICE))
        look(torch.eye(10, dtype=dtype, device=DEVICE))
        y = tensor(64, 100, dtype=dtype, grad=True)
        for f in (F.dropout, F.dropout1d, F.alpha_dropout):
            back(f(y, 0.5, True), y)
        z = tensor(8, 16, 8, 8, dtype=dtype, grad=True)
        back(F.dropout2d(z, 0.5, True), z)
        for start in (torch.nn.init.kaiming_uniform_, torch.nn.init.xavier_normal_,
                      torch.nn.init.trunc_normal_, torch.nn.init.orthogonal_):  # fmt: skip
            if dtype == torch.float32:
                look(start(tensor(8, 8)))
    for dtype in (*FLOATS, DOUBLE, LONG, INT):
        look(torch.arange(10, dtype=dtype, device=DEVICE))
        look(torch.randint(0, 10, (100,), device=DEVICE, dtype=dtype))
    look(torch.randint(0, 1 << 40, (100,), device=DEVICE), torch.randperm(10, device=DEVICE))
    look(torch.randperm(1000, device=DEVICE), torch.randperm(100000, device=DEVICE))
    for n in (10, 1000, 50257):
        for r in (1, 8):
            p = tensor(r, n)
            look(torch.multinomial(p, 1), torch.multinomial(p, 5, replacement=True))
            look(torch.multinomial(p, 5))


@station
def pooling():
    for dtype in FLOATS:
        for shape in (
            (32, 8, 16, 16),
            (8, 64, 112, 112),
            (16, 3, 7, 7),
            (16, 6, 28, 28),
            (4, 20, 9, 9),
        ):
            for last in (False, True):
                x = tensor(*shape, dtype=dtype)
                if last:
                    x = x.to(memory_format=torch.channels_last)
                x.requires_grad_()
                for size, step, edge in ((2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 1, 0)):
                    back(F.max_pool2d(x, size, step, edge), x)
                    back(F.avg_pool2d(x, size, step, edge), x)
                for size in (1, 2, 4, 7):
                    back(F.adaptive_avg_pool2d(x, size), x)
                    back(F.adaptive_max_pool2d(x, size), x)
                for mode in ("nearest", "bilinear", "bicubic"):
                    back(F.interpolate(x, scale_factor=2, mode=mode), x)
        x = tensor(8, 16, 100, dtype=dtype, grad=True)
        back(F.max_pool1d(x, 2), x)
        back(F.avg_pool1d(x, 2), x)
        back(F.adaptive_avg_pool1d(x, 1), x)
        x = tensor(2, 4, 8, 8, 8, dtype=dtype, grad=True)
        back(F.max_pool3d(x, 2), x)
        back(F.avg_pool3d(x, 2), x)


@station
def convolutions():
    for dtype in FLOATS:
        for c, out, size, step, edge, groups, side in CONVOLUTIONS:
            for last in (False, True):
                x = tensor(8, c, side, side, dtype=dtype)
                w, b = tensor(out, c // groups, size, size, dtype=dtype), tensor(out, dtype=dtype)
                if last:
                    x, w = (t.to(memory_format=torch.channels_last) for t in (x, w))
                leaves = [t.requires_grad_() for t in (x, w, b)]
                back(F.conv2d(x, w, b, step, edge, 1, groups), *leaves)
        x, w, b = (
            tensor(8, 16, 50, dtype=dtype, grad=True),
            tensor(8, 16, 3, dtype=dtype),
            tensor(8, dtype=dtype),
        )
        back(F.conv1d(x, w, b), x)
        w = tensor(16, 8, 4, 4, dtype=dtype, grad=True)
        x = tensor(4, 16, 8, 8, dtype=dtype, grad=True)
        back(F.conv_transpose2d(x, w, b, 2, 1), x, w)
