"""Operators held by memory or arithmetic, beside PyTorch in the same process.

The first table has the rows of the project's standing comparison; `--more` adds other layouts,
dtypes and operators. Bandwidth counts each input read once and each output written once."""

import argparse

from common import DEVICE, modules, race, table

ELEMENTS = 1 << (26 if DEVICE == "cuda" else 23)
WIDTH = 4096


def force(result):
    for tensor in result if isinstance(result, (tuple, list)) else [result]:
        tensor.data_ptr()


class Rows:
    """What one module computes, by the row's name: (function, amount, calls a round, unit)."""

    def __init__(self, module):
        self.m = module
        self.rows = {}

    def add(self, name, function, amount=1.0, unit="GB/s", inner=4):
        self.rows[name] = (lambda: force(function()), amount, inner, unit)

    def random(self, *shape, dtype="float32"):
        return self.m.randn(*shape, device=DEVICE).to(getattr(self.m, dtype))

    def standing(self):
        m, f = self.m, self.m.nn.functional
        a, b = self.random(16, 16), self.random(16, 16)
        q = self.random(64, 64)

        def chain():
            x = a
            for _ in range(10):
                x = m.relu(x + b)
            return x

        self.add("small_op", chain, 20, "us", 20)
        self.add("small_op_forced", lambda: a + b, 1, "us", 200)
        self.add("small_mm", lambda: q @ q, 1, "us", 100)
        x, w = self.random(ELEMENTS // WIDTH, WIDTH), self.random(WIDTH)
        size = ELEMENTS * 4 / 1e9
        self.add("copy", lambda: x.clone(), 2 * size)
        self.add("add", lambda: x + x, 2 * size)
        self.add("gelu", lambda: f.gelu(x), 2 * size)
        self.add("sum", lambda: x.sum(), size)
        self.add("sum_dim1", lambda: x.sum(1), size)
        self.add("sum_dim0", lambda: x.sum(0), size)
        self.add("softmax", lambda: m.softmax(x, -1), 2 * size)
        self.add("layernorm", lambda: f.layer_norm(x, (WIDTH,), w, w), 2 * size)
        self.add("transpose_copy", lambda: x.t().contiguous(), 2 * size)
        self.add("chain", lambda: m.tanh(x * 0.5 + 1.0) * m.sigmoid(x) - x.abs().sqrt(), 2 * size)
        self.add("cumsum", lambda: x.cumsum(1), 2 * size)
        self.add("var", lambda: x.var(1), size)
        rows = x.shape[0]
        idx = m.tensor([(i * 1103) % rows for i in range(rows)], device=DEVICE)
        self.add("index_select", lambda: x[idx], 2 * size)
        keys = self.random(1 << (22 if DEVICE == "cuda" else 20))
        self.add("sort", lambda: tuple(m.sort(keys)), keys.numel() / 1e6, "Mkeys/s")
        for n in (1024,):
            c, d = self.random(n, n), self.random(n, n)
            self.add(f"gemm_fp32_{n}", lambda c=c, d=d: c @ d, 2 * n**3 / 1e12, "TFLOP/s")

    def more(self):
        m = self.m
        size = ELEMENTS * 4 / 1e9
        x = self.random(ELEMENTS // WIDTH, WIDTH)
        tall = self.random(ELEMENTS // 64, 64)
        cube = self.random(64, ELEMENTS // 64 // 512, 512)
        half, brain = x.to(m.float16), x.to(m.bfloat16)
        image = self.random(ELEMENTS // (64 * 56 * 56), 64, 56, 56)
        size_image = image.numel() * 4 / 1e9
        self.add("sum fp16 dim1", lambda: half.sum(1), size / 2)
        self.add("sum fp16 dim0", lambda: half.sum(0), size / 2)
        self.add("sum bf16 dim0", lambda: brain.sum(0), size / 2)
        self.add("sum middle", lambda: cube.sum(1), size)
        self.add("sum outer pair", lambda: cube.sum((0, 2)), size)
        self.add("sum tall dim0", lambda: tall.sum(0), size)
        self.add("sum tall dim1", lambda: tall.sum(1), size)
        self.add("sum NCHW channels", lambda: image.sum((0, 2, 3)), size_image)
        for name in ("mean", "amax", "amin", "prod", "var", "std"):
            self.add(f"{name} dim0", lambda n=name: getattr(m, n)(x, 0), size)
            self.add(f"{name} dim1", lambda n=name: getattr(m, n)(x, 1), size)
        self.add("softmax dim0", lambda: m.softmax(x, 0), 2 * size)
        self.add("softmax middle", lambda: m.softmax(cube, 1), 2 * size)
        self.add("softmax short rows", lambda: m.softmax(tall, 1), 2 * size)
        self.add("softmax bf16", lambda: m.softmax(brain, 1), size)
        self.add("log_softmax", lambda: m.log_softmax(x, 1), 2 * size)
        self.add("fill", lambda: m.empty_like(x).fill_(1.0), size)
        self.add("transpose fp16", lambda: half.t().contiguous(), size)
        self.add("transpose tall", lambda: tall.t().contiguous(), 2 * size)
        self.add("transpose batched", lambda: cube.transpose(1, 2).contiguous(), 2 * size)
        self.add("NCHW to NHWC", lambda: image.permute(0, 2, 3, 1).contiguous(), 2 * size_image)
        last = image.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        self.add("NHWC to NCHW", lambda: last.contiguous(), 2 * size_image)
        self.add("every second", lambda: x[:, ::2].contiguous(), 1.5 * size)
        out = m.empty(ELEMENTS // WIDTH, 2 * WIDTH, device=DEVICE)
        self.add("copy into slice", lambda: out[:, WIDTH:].copy_(x), 2 * size)
        self.add("float32 to fp16", lambda: x.to(m.float16), 1.5 * size)
        self.add("float32 to bf16", lambda: x.to(m.bfloat16), 1.5 * size)
        self.add("bf16 to float32", lambda: brain.to(m.float32), 1.5 * size)
        for name in ("exp", "log", "tanh", "sigmoid", "sin", "cos", "erf", "log1p", "expm1"):
            self.add(name, lambda n=name: getattr(m, n)(x.abs() if "log" in n else x), 2 * size)
        self.add("pow", lambda: m.pow(x.abs(), 1.7), 2 * size)
        self.add("atan", lambda: m.atan(x), 2 * size)
        self.add("tanh bf16", lambda: m.tanh(brain), size)
        f = m.nn.functional
        w = self.random(WIDTH)
        self.add("rms by hand", lambda: x * (x * x).mean(1, keepdim=True).rsqrt() * w, 2 * size)
        c = self.random(64)
        s = c * c + 0.1
        self.add(
            "batch_norm train", lambda: f.batch_norm(image, None, None, c, c, True), 2 * size_image
        )
        self.add("batch_norm eval", lambda: f.batch_norm(image, c, s, c, c, False), 2 * size_image)
        self.add("group_norm", lambda: f.group_norm(image, 8, c, c), 2 * size_image)
        for n in (128, 256, 512, 2048):
            a, b = self.random(n, n), self.random(n, n)
            self.add(f"gemm_fp32_{n}", lambda a=a, b=b: a @ b, 2 * n**3 / 1e12, "TFLOP/s")
        a = self.random(1024, 1024)
        self.add(
            "gemm_fp32 a.t() @ b.t()", lambda a=a: a.t() @ a.t(), 2 * 1024**3 / 1e12, "TFLOP/s"
        )
        for dtype in ("float64", "bfloat16", "float16"):
            a = self.random(512, 512, dtype=dtype)
            self.add(f"gemm_{dtype}_512", lambda a=a: a @ a, 2 * 512**3 / 1e12, "TFLOP/s")
        a = self.random(64, 128, 128)
        self.add("bmm 64 x 128", lambda a=a: m.bmm(a, a), 64 * 2 * 128**3 / 1e12, "TFLOP/s")
        v, w, bias = self.random(256, 512), self.random(512, 512), self.random(512)
        self.add("linear", lambda: f.linear(v, w, bias), 2 * 256 * 512**2 / 1e12, "TFLOP/s", 3)


def collect(found, more, only):
    """{row: {contender: (module, function)}}, and what each row counts."""
    rows, facts = {}, {}
    for which, module in found.items():
        r = Rows(module)
        r.standing()
        if more:
            r.more()
        for name, (function, amount, inner, unit) in r.rows.items():
            if only and not any(word in name for word in only):
                continue
            try:
                function()
            except (AttributeError, NotImplementedError, RuntimeError, TypeError) as error:
                print(f"{which} has not {name}: {str(error).splitlines()[0][:90]}")
                continue
            rows.setdefault(name, {})[which] = (module, function)
            facts[name] = (amount, inner, unit)
    return rows, facts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--more", action="store_true", help="other layouts, dtypes, operators")
    parser.add_argument("--only", default="", help="rows with one of these words, by commas")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--deferred", action="store_true", help="Tessera with deferral on, too")
    options = parser.parse_args()
    found = modules()
    tessera = found["tessera"]
    rows, facts = collect(found, options.more, [w for w in options.only.split(",") if w])
    results = {}
    for name, contenders in rows.items():
        amount, inner, unit = facts[name]
        if "tessera" in contenders:
            module, function = contenders["tessera"]
            contenders["tessera"] = (module, function, lambda: tessera.fuse.set_mode("off"))
            if options.deferred:
                on = (module, function, lambda: tessera.fuse.set_mode("on"))
                contenders["deferred"] = on
        times = race(contenders, inner, rounds=options.rounds)
        tessera.fuse.set_mode("off")
        lower = unit == "us"
        value = {k: t * 1e6 / amount if lower else amount / t for k, t in times.items()}
        if "torch" in value and "tessera" in value:
            ratio = value["tessera"] / value["torch"]
            value["times torch"] = 1 / ratio if lower else ratio
        results[f"{name} ({unit})"] = value
    table("bound by memory or arithmetic", results, "us: less is better; others: more is")


if __name__ == "__main__":
    main()
