"""Convolutions on a GPU against the CPU's, with cuDNN and without, and their time beside PyTorch's.

    python3 tools/gpu/conv_check.py                 both parts
    python3 tools/gpu/conv_check.py --answers       a part alone
    python3 tools/gpu/conv_check.py --times [--batch 64]
    python3 tools/gpu/conv_check.py --few           a few small shapes, for an emulated GPU

Tessera must be importable. PyTorch is measured where a plain `python3` of the same installation
has one. The status is 1 if an answer was wrong.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import time

# input, weight, options; transposed ones have their weight the other way round
RESNET = [
    ((2, 3, 224, 224), (64, 3, 7, 7), {"stride": 2, "padding": 3}),
    ((2, 64, 56, 56), (64, 64, 1, 1), {}),
    ((2, 64, 56, 56), (64, 64, 3, 3), {"padding": 1}),
    ((2, 64, 56, 56), (256, 64, 1, 1), {}),
    ((2, 256, 56, 56), (128, 256, 1, 1), {}),
    ((2, 128, 56, 56), (128, 128, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 256, 56, 56), (512, 256, 1, 1), {"stride": 2}),
    ((2, 256, 14, 14), (256, 256, 3, 3), {"padding": 1}),
    ((2, 1024, 14, 14), (512, 1024, 1, 1), {}),
    ((2, 512, 7, 7), (512, 512, 3, 3), {"padding": 1}),
    ((2, 512, 7, 7), (2048, 512, 1, 1), {}),
]
OTHERS = [
    ((3, 5, 12, 11), (7, 5, 3, 3), {"padding": 1}),
    ((1, 1, 9, 9), (1, 1, 3, 3), {}),
    ((2, 8, 1, 17), (4, 8, 1, 5), {"padding": (0, 2)}),
    ((2, 16, 15, 13), (24, 8, 3, 3), {"groups": 2, "stride": (2, 1), "padding": (0, 1)}),
    ((2, 32, 14, 14), (32, 4, 3, 3), {"groups": 8, "padding": 1}),
    ((2, 32, 28, 28), (32, 1, 3, 3), {"groups": 32, "padding": 1}),
    ((2, 32, 28, 28), (64, 1, 5, 5), {"groups": 32, "padding": 2, "stride": 2}),
    ((2, 16, 20, 20), (16, 16, 3, 3), {"dilation": 2, "padding": 2}),
    ((2, 12, 19, 23), (20, 12, 3, 5), {"dilation": (3, 2), "stride": 2, "padding": (3, 1)}),
    ((4, 16, 100), (32, 16, 5), {"padding": 2}),
    ((4, 16, 101), (16, 8, 3), {"groups": 2, "dilation": 4, "stride": 3}),
    ((2, 8, 6, 14, 14), (16, 8, 3, 3, 3), {"padding": 1}),
    ((2, 8, 5, 9, 10), (8, 4, 2, 3, 1), {"groups": 2, "stride": (1, 2, 2)}),
    ((1, 3, 8, 32, 32), (16, 3, 3, 7, 7), {"stride": (1, 2, 2), "padding": (1, 3, 3)}),
]
TRANSPOSED = [
    ((2, 16, 14, 14), (16, 8, 4, 4), {"stride": 2, "padding": 1}),
    ((2, 8, 9, 11), (8, 6, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    ((2, 12, 7, 7), (12, 2, 3, 3), {"groups": 6, "dilation": 2}),
    ((2, 16, 30), (16, 8, 4), {"stride": 4}),
    ((1, 6, 4, 6, 6), (6, 4, 2, 2, 2), {"stride": 2}),
]
FEW = [OTHERS[0], OTHERS[3], OTHERS[6], OTHERS[9], OTHERS[12]], [TRANSPOSED[1]]

# dtype, TF32 allowed, what an answer may be off by, of the largest
KINDS = [
    ("float64", False, 1e-10),
    ("float32", False, 1e-4),
    ("float32", True, 2e-3),
    ("float16", False, 4e-3),
    ("bfloat16", False, 2e-2),
]
NAMES = ("out", "input's", "weight's", "bias's")

# of ResNet-50: how often, channels, filters, kernel, stride, size
LAYERS = [
    (1, 3, 64, 7, 2, 224),
    (1, 64, 64, 1, 1, 56),
    (3, 64, 64, 3, 1, 56),
    (4, 64, 256, 1, 1, 56),
    (2, 256, 64, 1, 1, 56),
    (1, 256, 128, 1, 1, 56),
    (1, 128, 128, 3, 2, 56),
    (1, 256, 512, 1, 2, 56),
    (4, 128, 512, 1, 1, 28),
    (3, 512, 128, 1, 1, 28),
    (3, 128, 128, 3, 1, 28),
    (1, 512, 256, 1, 1, 28),
    (1, 256, 256, 3, 2, 28),
    (1, 512, 1024, 1, 2, 28),
    (6, 256, 1024, 1, 1, 14),
    (5, 1024, 256, 1, 1, 14),
    (5, 256, 256, 3, 1, 14),
    (1, 1024, 512, 1, 1, 14),
    (1, 512, 512, 3, 2, 14),
    (1, 1024, 2048, 1, 2, 14),
    (3, 512, 2048, 1, 1, 7),
    (2, 2048, 512, 1, 1, 7),
    (2, 512, 512, 3, 1, 7),
]
# A filter a channel: not ResNet's, so counted as none.
DEPTHWISE = [
    (0, 96, 96, 3, 1, 112),
    (0, 192, 192, 3, 1, 56),
    (0, 384, 384, 3, 2, 28),
    (0, 384, 384, 5, 1, 28),
    (0, 96, 96, 7, 1, 56),
]
TINY = [(1, 4, 8, 3, 1, 8), (2, 8, 8, 1, 2, 6)]
# dtype, layout, benchmark, cuDNN
MODES = [
    ("float32", "nchw", False, True),
    ("float32", "nhwc", False, True),
    ("bfloat16", "nchw", False, True),
    ("bfloat16", "nhwc", False, True),
    ("bfloat16", "nhwc", True, True),
    ("float32", "nchw", False, False),
    ("bfloat16", "nhwc", False, False),
]


def function_of(torch, shape, transposed):
    name = f"conv{'_transpose' if transposed else ''}{len(shape) - 2}d"
    return getattr(torch.nn.functional, name)


def last(torch, x):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.contiguous(memory_format=formats[x.dim()]) if x.dim() in formats else x


def run(torch, f, tensors, options, grad):
    """The result and its gradients by all of the tensors."""
    tensors = [t.detach().requires_grad_() for t in tensors]
    out = f(*tensors, **options)
    return [out.detach(), *torch.autograd.grad(out, tensors, grad)]


def check_shape(torch, shape, weight, options, transposed, report):
    """Numbers that bfloat16 holds, so that one answer of the CPU's serves all dtypes."""
    f = function_of(torch, shape, transposed)
    outs = weight[1] * options.get("groups", 1) if transposed else weight[0]
    torch.manual_seed(0)
    tensors = [torch.randn(s).bfloat16().double() for s in (shape, weight, (outs,))]
    grad = torch.randn(f(*tensors, **options).shape).bfloat16().double()
    want = run(torch, f, tensors, options, grad)
    for dtype, tf32, tolerance in KINDS:
        kind = getattr(torch, dtype)
        for layout in ("nchw", "nhwc") if len(shape) > 3 else ("nchw",):
            here = [t.to(kind).to("cuda") for t in tensors]
            if layout == "nhwc":
                here = [last(torch, t) for t in here]
            g = grad.to(kind).to("cuda")
            for cudnn in (True, False):
                if tf32 and not cudnn:
                    continue
                row = f"{dtype}{' tf32' if tf32 else ''}", layout, "cudnn" if cudnn else "tiles"
                place = f"{'transposed ' if transposed else ''}{shape} {weight} {options}"
                try:
                    with torch.backends.cudnn.flags(enabled=cudnn, allow_tf32=tf32):
                        got = run(torch, f, here, options, g)
                        got = [t.cpu().double() for t in got]
                except RuntimeError as error:
                    refused = "does not take" in str(error)
                    report(row, -1.0 if refused else float("inf"), f"{place}: {error}", True)
                    continue
                for name, a, b in zip(NAMES, got, want, strict=True):
                    off = float((a - b).abs().max()) / max(float(b.abs().max()), 1e-30)
                    report(row, off, f"{name} of {place}", not off <= tolerance)


def answers(torch, few):
    began, rows, wrong, refused = time.time(), {}, [], []

    def report(row, off, where, bad):
        if off < 0:
            refused.append(f"REFUSED {' '.join(row)}: {where}")
            return
        count, worst, place = rows.get(row, (0, -1.0, ""))
        rows[row] = (count + 1, *((off, where) if off > worst or off != off else (worst, place)))
        if bad:
            wrong.append(f"WRONG {' '.join(row)}: off by {off:.2g}, {where}")

    straight, transposed = FEW if few else (RESNET + OTHERS, TRANSPOSED)
    for cases, turned in ((straight, False), (transposed, True)):
        for case in cases:
            check_shape(torch, *case, turned, report)
    for line in wrong[:40] + refused[:20]:
        print(line)
    print(f"{'dtype':14} {'layout':6} {'by':6} {'checked':>8} {'worst':>9}  where")
    for row, (count, off, where) in sorted(rows.items()):
        print(f"{row[0]:14} {row[1]:6} {row[2]:6} {count:8} {off:9.1e}  {where[:70]}")
    shapes = len(straight) + len(transposed)
    print(
        f"{shapes} shapes, {len(wrong)} wrong, {len(refused)} refused by cuDNN, "
        f"{time.time() - began:.0f} s\n",
        flush=True,
    )
    return not wrong


def milliseconds(torch, f, seconds=0.02):
    """Of one call, the best of three stretches."""
    for _ in range(3):
        f()
    torch.cuda.synchronize()
    best, repeats = float("inf"), 1
    for _ in range(4):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(repeats):
            f()
        end.record()
        end.synchronize()
        each = begin.elapsed_time(end) / repeats
        if repeats > 1:
            best = min(best, each)
        else:
            best = each if each > 1000 * seconds else best
            repeats = max(2, min(100, int(1000 * seconds / max(each, 1e-3))))
    return best


def measure(module, batch, few):
    """One line of JSON for each layer and mode; the same code for both frameworks."""
    torch = importlib.import_module(module)
    conv = torch.nn.functional.conv2d
    for dtype, layout, benchmark, cudnn in MODES:
        kind = getattr(torch, dtype)
        torch.backends.cudnn.enabled = cudnn
        torch.backends.cudnn.benchmark = benchmark
        if not cudnn and module == "torch":
            continue
        for times, channels, filters, k, stride, size in TINY if few else LAYERS + DEPTHWISE:
            x = torch.randn(batch, channels, size, size, device="cuda").to(kind)
            groups = 1 if times else channels
            w = torch.randn(filters, channels // groups, k, k, device="cuda").to(kind)
            if layout == "nhwc":
                x, w = last(torch, x), last(torch, w)
            x.requires_grad_(channels > 3)
            w.requires_grad_()
            wanted = (x, w) if channels > 3 else (w,)
            options = {"stride": stride, "padding": k // 2, "groups": groups}

            def forward(x=x, w=w, options=options):
                with torch.no_grad():
                    return conv(x, w, **options)

            y = conv(x, w, **options)
            g = torch.ones_like(y)

            def backward(y=y, wanted=wanted, g=g):
                return torch.autograd.grad(y, wanted, g, retain_graph=True)

            row = {
                "mode": [dtype, layout, benchmark, cudnn],
                "layer": [times, channels, filters, k, stride, size],
                "forward": milliseconds(torch, forward),
                "backward": milliseconds(torch, backward),
            }
            print(json.dumps(row), flush=True)


def measured(module, batch, few):
    command = [sys.executable, os.path.abspath(__file__), "--measure", module]
    command += ["--batch", str(batch)] + ["--few"] * few
    environment = dict(os.environ)
    if module == "torch":
        environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=420,
        check=False,
    )
    if done.returncode:
        tail = done.stderr.strip().splitlines()
        print(f"{module} stopped: {tail[-1] if tail else done.returncode}")
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {(tuple(r["mode"]), tuple(r["layer"])): (r["forward"], r["backward"]) for r in rows}


def times(batch, few, every):
    ours, theirs = measured("tessera", batch, few), measured("torch", batch, few)
    print(f"ResNet-50's layers, batch {batch}, microseconds: forward, then both gradients")
    if not every:
        print("(those in which PyTorch is faster; --every for all)")
    for mode in MODES:
        dtype, layout, benchmark, cudnn = mode
        rows = [(layer, t) for (m, layer), t in ours.items() if m == mode]
        if not rows:
            continue
        title = f"{dtype} {layout}{' benchmark' if benchmark else ''}{'' if cudnn else ' tiles'}"
        print(f"{title:40} {'tessera':>17} {'torch':>17} {'torch/tessera':>14}")
        sums = [0.0] * 4
        for layer, (a, b) in rows:
            peer = theirs.get((mode, layer), (float("nan"),) * 2)
            count, channels, filters, k, stride, size = layer
            often = f"{count}x" if count else "depthwise"
            name = f"  {often} {channels:4}->{filters:4} {k}x{k}/{stride} at {size}"
            ratio = " ".join(f"{p / t:6.2f}" for p, t in zip(peer, (a, b), strict=True))
            cells = [1000 * v for v in (a, b, *peer)]
            if (
                every
                or not count
                or not all(p >= 0.95 * t for p, t in zip(peer, (a, b), strict=True))
            ):
                print(f"{name:40} " + " ".join(f"{c:8.1f}" for c in cells) + "  " + ratio)
            sums = [s + count * c for s, c in zip(sums, cells, strict=True)]
        ratio = " ".join(f"{sums[i + 2] / sums[i]:6.2f}" for i in range(2))
        print(f"{'  all':40} " + " ".join(f"{s:8.0f}" for s in sums) + "  " + ratio, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--every", action="store_true", help="print all layers")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--measure", choices=("tessera", "torch"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measure(asked.measure, asked.batch, asked.few)
        return 0
    os.environ["TESSERA_CUDNN"] = "must"  # what it does not take is to be seen
    import tessera

    both = not asked.answers and not asked.times
    print(f"{tessera.cuda.get_device_name()}, cuDNN {tessera.backends.cudnn.version()}")
    right = answers(tessera, asked.few) if asked.answers or both else True
    if asked.times or both:
        times(asked.batch, asked.few, asked.every)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
