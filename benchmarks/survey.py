"""Common operators one by one, Tessera beside PyTorch: which are slow that no benchmark asks for?

    python3 benchmarks/survey.py --module torch > torch.json      (a Python that has PyTorch)
    python3 benchmarks/survey.py > tessera.json                   (Tessera must be importable)
    python3 benchmarks/survey.py --compare torch.json tessera.json

Times are medians in microseconds, of about a million elements on the CPU; what is deferred is
asked for. The comparison lists the operators with PyTorch's time over Tessera's, the worst first.
"""

import argparse
import importlib
import json
import sys
import time

UNARY = """
abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh
asinh acosh atanh erf erfc sigmoid relu floor ceil round trunc frac sign square reciprocal isnan
isfinite signbit deg2rad digamma lgamma erfinv logit i0 sinc nan_to_num
""".split()
OF_SHARES = """
log log2 log10 log1p sqrt rsqrt asin acos atanh erfinv logit digamma lgamma
""".split()
BINARY = """
add sub mul div pow maximum minimum atan2 fmod remainder hypot copysign logaddexp eq lt
floor_divide fmax xlogy nextafter heaviside
""".split()
ACTIVATIONS = """
gelu silu elu selu celu leaky_relu softplus hardtanh hardswish hardsigmoid mish logsigmoid relu6
softsign tanhshrink hardshrink softshrink glu
""".split()


def operators(torch, F):
    """Calls by name."""
    torch.manual_seed(0)
    x = torch.randn(1024, 1024)
    y = torch.randn(1024, 1024)
    p = torch.rand(1024, 1024) * 0.98 + 0.01
    b = x > 0
    i = torch.randint(0, 100, (1024, 1024))
    h = x.half()
    bf = x.bfloat16()
    d = x.double()
    img = torch.randn(8, 16, 64, 64)
    idx = torch.randint(0, 1024, (1024,))
    w = torch.randn(1000, 256)
    ids = torch.randint(0, 1000, (64, 128))
    ops = {}
    for n in UNARY:
        a = p if n in OF_SHARES else p + 1.5 if n == "acosh" else x
        ops[n] = lambda f=getattr(torch, n), a=a: f(a)
    for n in BINARY:
        ops[n] = lambda f=getattr(torch, n): f(p, p) if f.__name__ in ("pow", "xlogy") else f(x, y)
    for n in ACTIVATIONS:
        ops["F." + n] = lambda f=getattr(F, n): f(x)
    ops.update(
        {
            "half add": lambda: h + h,
            "bf16 mul": lambda: bf * bf,
            "half exp": lambda: h.exp(),
            "bf16 gelu": lambda: F.gelu(bf),
            "double exp": lambda: d.exp(),
            "int add": lambda: i + i,
            "int div": lambda: i // 7,
            "int mod": lambda: i % 7,
            "where": lambda: torch.where(b, x, y),
            "masked_fill": lambda: x.masked_fill(b, 0.0),
            "clamp": lambda: x.clamp(-1, 1),
            "lerp": lambda: torch.lerp(x, y, 0.3),
            "addcmul": lambda: torch.addcmul(x, x, y),
            "bool and": lambda: b & b,
            "not": lambda: ~b,
            "to half": lambda: x.half(),
            "to int": lambda: x.int(),
            "int to float": lambda: i.float(),
            "to double": lambda: x.double(),
            "cumsum0": lambda: x.cumsum(0),
            "cumprod": lambda: x.cumprod(1),
            "flip": lambda: x.flip(1),
            "roll": lambda: x.roll(3, 1),
            "t": lambda: x.t().contiguous(),
            "permute": lambda: img.permute(0, 2, 3, 1).contiguous(),
            "cat1": lambda: torch.cat([x, y], 1),
            "stack": lambda: torch.stack([x, y], 2),
            "gather": lambda: x.gather(1, (i % 100)),
            "index": lambda: x[idx],
            "index col": lambda: x[:, idx],
            "masked_select": lambda: x[b],
            "nonzero": lambda: b.nonzero(),
            "scatter_add": lambda: torch.zeros_like(x).scatter_add(1, i, y),
            "index_add": lambda: torch.zeros_like(x).index_add(0, idx, y),
            "topk": lambda: x.topk(10, 1)[0],
            "sort1": lambda: x.sort(1)[0],
            "argsort": lambda: x.argsort(1),
            "unique": lambda: i.unique(),
            "bincount": lambda: torch.bincount(i.reshape(-1)),
            "histc": lambda: x.histc(50),
            "std0": lambda: x.std(0),
            "var": lambda: x.var(),
            "mean0": lambda: x.mean(0),
            "argmax0": lambda: x.argmax(0),
            "argmin1": lambda: x.argmin(1),
            "max1": lambda: x.max(1)[0],
            "any0": lambda: b.any(0),
            "prod": lambda: x.prod(1),
            "softmax0": lambda: torch.softmax(x, 0),
            "log_softmax": lambda: torch.log_softmax(x, 1),
            "layernorm": lambda: F.layer_norm(x, (1024,)),
            "group_norm": lambda: F.group_norm(img, 4),
            "batch_norm": lambda: F.batch_norm(img, None, None, training=True),
            "maxpool": lambda: F.max_pool2d(img, 2),
            "avgpool": lambda: F.avg_pool2d(img, 2),
            "adaptive": lambda: F.adaptive_avg_pool2d(img, 1),
            "interpolate": lambda: F.interpolate(img, scale_factor=2),
            "bilinear": lambda: F.interpolate(img, scale_factor=2, mode="bilinear"),
            "pad": lambda: F.pad(img, (1, 1, 1, 1)),
            "unfold": lambda: F.unfold(img, 3),
            "embedding": lambda: F.embedding(ids, w),
            "one_hot": lambda: F.one_hot(ids, 1000),
            "cross_entropy": lambda: F.cross_entropy(x, idx),
            "mse": lambda: F.mse_loss(x, y),
            "bce": lambda: F.binary_cross_entropy(p, p),
            "bcel": lambda: F.binary_cross_entropy_with_logits(x, p),
            "kl": lambda: F.kl_div(x, p, reduction="sum"),
            "smoothl1": lambda: F.smooth_l1_loss(x, y),
            "cosine": lambda: F.cosine_similarity(x, y),
            "cdist": lambda: torch.cdist(x[:200], y[:200]),
            "normalize": lambda: F.normalize(x),
            "tril": lambda: x.tril(),
            "diag": lambda: torch.diag_embed(x[:64]),
            "outer": lambda: torch.outer(x[0], y[0]),
            "einsum": lambda: torch.einsum("ij,kj->ik", x, y),
            "bmm": lambda: torch.bmm(img.reshape(128, 64, 64), img.reshape(128, 64, 64)),
            "matvec": lambda: x @ y[0],
            "randn": lambda: torch.randn(1024, 1024),
            "rand": lambda: torch.rand(1024, 1024),
            "randint": lambda: torch.randint(0, 9, (1024, 1024)),
            "randperm": lambda: torch.randperm(1 << 20),
            "bernoulli": lambda: torch.bernoulli(p),
            "dropout": lambda: F.dropout(x, 0.5),
            "multinomial": lambda: torch.multinomial(p, 5),
            "normal_": lambda: x.clone().normal_(),
            "arange": lambda: torch.arange(1 << 20),
            "linspace": lambda: torch.linspace(0, 1, 1 << 20),
            "zeros": lambda: torch.zeros(1024, 1024),
            "eye": lambda: torch.eye(1024),
            "full": lambda: torch.full((1024, 1024), 2.0),
            "equal": lambda: torch.equal(x, x),
            "allclose": lambda: torch.allclose(x, x),
            "repeat": lambda: x[:256].repeat(4, 1),
            "repeat_interleave": lambda: x[:256].repeat_interleave(4, 0),
            "tile": lambda: x[:, :256].tile(1, 4),
            "meshgrid": lambda: torch.meshgrid(x[0], x[0], indexing="ij")[0].contiguous(),
            "quantile": lambda: x[:64].quantile(0.5, 1),
            "median": lambda: x.median(1)[0],
            "kthvalue": lambda: x.kthvalue(5, 1)[0],
            "logsumexp0": lambda: x.logsumexp(0),
            "norm": lambda: x.norm(),
            "norm1d": lambda: x.norm(1, 1),
            "fft": lambda: torch.fft.fft(x),
            "rfft2": lambda: torch.fft.rfft2(img),
            "inv": lambda: torch.linalg.inv(x[:256, :256]),
            "svd": lambda: torch.linalg.svd(x[:128, :128])[1],
            "solve": lambda: torch.linalg.solve(x[:256, :256], y[:256, :4]),
            "det": lambda: torch.linalg.det(x[:256, :256]),
            "conv1d": lambda: F.conv1d(img.reshape(8, 16, 4096), torch.ones(16, 16, 3)),
            "depthwise": lambda: F.conv2d(img, torch.ones(16, 1, 3, 3), groups=16),
            "convT": lambda: F.conv_transpose2d(img, torch.ones(16, 8, 3, 3)),
            "searchsorted": lambda: torch.searchsorted(x.sort(1)[0], y),
            "count_nonzero": lambda: torch.count_nonzero(x),
            "nansum": lambda: x.nansum(0),
            "cummax0": lambda: x.cummax(0)[0],
            "diff": lambda: x.diff(),
            "cross": lambda: torch.linalg.cross(x[:, :3], y[:, :3]),
        }
    )
    return ops


def median_us(f):
    """With the time to look at the result."""

    def run():
        result = f()
        if hasattr(result, "data_ptr"):
            result.data_ptr()

    run()
    run()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - begin < 0.06 and len(times) < 40):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", default="tessera")
    parser.add_argument("--compare", nargs=2, metavar="FILE")
    options = parser.parse_args()
    if options.compare:
        theirs, ours = (json.load(open(name)) for name in options.compare)
        rows = [(theirs[k] / ours[k], k) for k in theirs if k in ours]
        for ratio, name in sorted(rows):
            print(f"{name:20s} {ratio:6.2f} x   {theirs[name]:9.0f} us  {ours[name]:9.0f} us")
        return 0
    torch = importlib.import_module(options.module)
    functional = importlib.import_module(options.module + ".nn.functional")
    found = {}
    for name, f in operators(torch, functional).items():
        try:
            found[name] = median_us(f)
        except Exception as error:  # one that is missing does not end the survey
            print(f"{name}: {error}", file=sys.stderr)
    json.dump(found, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
