"""Indexing, masks, cat and losses by class on a GPU: their time beside PyTorch's.

    python3 tools/gpu/index_times.py [WORD...]      cases whose names contain a word
    python3 tools/gpu/index_times.py --few          small sizes, for an emulated GPU

Tessera must be importable. PyTorch is measured where a plain `python3` of the same installation
has one. Bytes are those that a case has to read and to write: GB/s of the last column but one.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys


def milliseconds(torch, f, seconds=0.05):
    """The best of five runs of several calls."""
    f()
    best, repeats = float("inf"), 1
    for _ in range(6):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(repeats):
            f()
        end.record()
        end.synchronize()
        each = begin.elapsed_time(end) / repeats
        if repeats > 1:
            best = min(best, each)
        repeats = max(2, min(200, int(1000 * seconds / max(each, 1e-3))))
    return best


def gradient(torch, loss, by):
    """Only the way back is timed."""
    out = loss()
    g = torch.ones_like(out)
    return lambda: torch.autograd.grad(out, by, g, retain_graph=True)


def cases(torch, few):
    """Name, bytes that must move, function."""
    f = torch.nn.functional
    rows, width, classes = (64, 256, 128) if few else (16384, 4096, 50304)
    many = 1 << (12 if few else 26)

    def normal(*shape):
        return torch.randn(*shape, device="cuda")

    def chosen(top, *shape):
        return torch.randint(0, top, shape, device="cuda")

    x, i, size = normal(rows, width), chosen(rows, rows), rows * width * 4
    each = torch.randperm(rows, device="cuda")
    half = x.bfloat16()
    yield "copy of rows", 2 * size, lambda: x.clone()
    yield "x[i]", 2 * size, lambda: x[i]
    yield "x[i] bfloat16", size, lambda: half[i]
    yield "x[:, j]", 2 * size, lambda j=chosen(width, width): x[:, j]
    yield "index_select", 2 * size, lambda: x.index_select(0, i)
    yield "x[i] = x", 2 * size, lambda y=x.clone(): y.index_copy_(0, each, x)
    yield "x[i] = 1", size, lambda y=x.clone(): y.index_fill_(0, each, 1.0)
    yield "index_add rows", 3 * size, lambda y=x.clone(): y.index_add_(0, i, x)
    yield "index_add bfloat16", 3 * size // 2, lambda y=half.clone(): y.index_add_(0, i, half)
    few_rows = torch.zeros(8, width, device="cuda")
    yield "index_add to 8 rows", size, lambda: few_rows.index_add_(0, i % 8, x)
    yield "cat 2, dim 0", 4 * size, lambda: torch.cat([x, x])
    yield "cat 2, dim 1", 4 * size, lambda: torch.cat([x, x], 1)
    yield "cat odd, dim 1", 4 * size, lambda z=normal(rows, width - 1): torch.cat([z, x], 1)
    parts = list(x.view(-1).chunk(500))
    yield "cat of 500", 2 * size, lambda: torch.cat(parts)
    v, k = normal(many), chosen(many, many)
    yield "gather elements", 16 * many, lambda: v.gather(0, k)
    yield "gather dim 1", 16 * rows * width, lambda j=chosen(width, rows, width): x.gather(1, j)
    yield "scatter elements", 16 * many, lambda y=v.clone(): y.scatter_(0, k, v)
    yield "scatter_add elements", 16 * many, lambda y=v.clone(): y.scatter_add_(0, k, v)
    wide = i[:, None].expand(rows, width)
    yield "scatter_add rows", 3 * size, lambda y=x.clone(): y.scatter_add_(0, wide, x)
    yield "amax elements", 16 * many, lambda y=v.clone(): y.scatter_reduce_(0, k, v, "amax")
    mask = v > 0
    yield "masked_select", 8 * many, lambda: v[mask]
    yield "masked_scatter", 10 * many, lambda y=v.clone(): y.masked_scatter_(mask, v)
    yield "nonzero", 6 * many, lambda: mask.nonzero()
    square = mask.view(-1, 64)
    yield "nonzero 2-d", 10 * many, lambda: square.nonzero()
    table = normal(classes, width).requires_grad_()
    yield (
        "embedding gradient",
        2 * size + classes * width * 4,
        gradient(torch, lambda: f.embedding(i, table), table),
    )
    logits, target = normal(rows, classes), chosen(classes, rows)
    logits.requires_grad_()
    yield "nll", rows * 40, lambda: f.nll_loss(logits.detach(), target)
    yield (
        "nll gradient",
        rows * classes * 4,
        gradient(torch, lambda: f.nll_loss(logits, target), logits),
    )
    yield "cross entropy", rows * classes * 8, lambda: f.cross_entropy(logits.detach(), target)
    yield (
        "cross entropy gradient",
        rows * classes * 16,
        gradient(torch, lambda: f.cross_entropy(logits, target), logits),
    )
    steps, batch = (20, 4) if few else (500, 64)
    probs = normal(steps, batch, 100).log_softmax(2).detach().requires_grad_()
    labels, lengths = chosen(99, batch, 15) + 1, ((steps,) * batch, (15,) * batch)
    yield "ctc", probs.numel() * 4, lambda: f.ctc_loss(probs.detach(), labels, *lengths)
    yield (
        "ctc gradient",
        probs.numel() * 8,
        gradient(torch, lambda: f.ctc_loss(probs, labels, *lengths), probs),
    )


def measure(module, words, few):
    torch = importlib.import_module(module)
    for name, size, f in cases(torch, few):
        if words and not any(w in name for w in words):
            continue
        try:
            took = milliseconds(torch, f)
        except Exception as error:  # the others are still of interest
            print(f"{module}: {name}: {error}", file=sys.stderr)
            took = float("nan")
        print(json.dumps([name, size, took]), flush=True)


def measured(module, words, few):
    command = [sys.executable, os.path.abspath(__file__), "--measure", module, *words]
    environment = dict(os.environ)
    if module == "torch":
        environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        command + ["--few"] * few, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return {name: (size, took) for name, size, took in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--measure", choices=("tessera", "torch"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        return measure(asked.measure, asked.words, asked.few)
    ours, theirs = (measured(m, asked.words, asked.few) for m in ("tessera", "torch"))
    print(f"{'microseconds':24} {'tessera':>10} {'torch':>10} {'GB/s':>8} {'torch/tessera':>14}")
    for name, (size, took) in ours.items():
        peer = theirs.get(name, (0, float("nan")))[1]
        rate = size / took / 1e6
        print(f"{name:24} {1e3 * took:10.1f} {1e3 * peer:10.1f} {rate:8.0f} {peer / took:14.2f}")
    return None


if __name__ == "__main__":
    sys.exit(main())
