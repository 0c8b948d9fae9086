"""Recurrent networks on a GPU against the CPU's steps, and an LSTM's time beside PyTorch's.

    python3 tools/gpu/rnn_check.py                 both parts
    python3 tools/gpu/rnn_check.py --answers       a part alone
    python3 tools/gpu/rnn_check.py --times
    python3 tools/gpu/rnn_check.py --few           small shapes, for an emulated GPU

Tessera must be importable. PyTorch is measured where a plain `python3` of the same installation
has one. The status is 1 if an answer was wrong, or if cuDNN was not used where it should be.
"""

import argparse
import importlib
import itertools
import json
import os
import subprocess
import sys
import time

INPUT, STEPS, BATCH = 24, 7, 8
# Below and above the sizes for which weights stay on the chip.
HIDDEN = (32, 400)
# dtype, TF32 allowed, what an answer may be off by, of its norm
DTYPES = [
    ("float64", False, 1e-10),
    ("float32", False, 2e-5),
    ("float32", True, 1e-2),
    ("float16", False, 1e-2),
    ("bfloat16", False, 5e-2),
]
MODES = ("tanh", "relu", "lstm", "gru")
SHAPE = {"input": 512, "hidden": 512, "layers": 2, "batch": 64, "steps": 128}


def network(torch, mode, input_size, hidden, **options):
    if mode in ("tanh", "relu"):
        return torch.nn.RNN(input_size, hidden, nonlinearity=mode, **options)
    return {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[mode](input_size, hidden, **options)


def cases(few):
    """mode, hidden size, packed, options."""
    sizes = HIDDEN[:1] if few else HIDDEN
    for mode, hidden, layers, both, form in itertools.product(
        MODES, sizes, (1, 2), (False, True), ("sequence", "batch first", "packed")
    ):
        if hidden == HIDDEN[1] and (layers == 2) != both:  # half of the large ones
            continue
        options = {"num_layers": layers, "bidirectional": both, "bias": layers == 1 or both}
        options["batch_first"] = form == "batch first"
        yield mode, hidden, form == "packed", options
        if mode == "lstm":
            yield mode, hidden, form == "packed", {**options, "proj_size": 9}


def run(torch, net, x, state, packed):
    """Results, then gradients of the input, the states and the weights."""
    x = x.detach().requires_grad_()
    state = [s.detach().requires_grad_() for s in state]
    data = x
    if packed:
        lengths = [STEPS - i % STEPS for i in range(BATCH)]
        pack = torch.nn.utils.rnn.pack_padded_sequence
        data = pack(x, lengths, net.batch_first, enforce_sorted=False)
    out, last = net(data, tuple(state) if len(state) > 1 else state[0])
    out = out.data if packed else out
    results = [out, *(last if isinstance(last, tuple) else [last])]
    grads = [torch.linspace(-1, 1, r.numel()).to(r).reshape(r.shape) for r in results]
    wanted = [x, *state, *net.parameters()]
    by_cudnn = any("Cudnn" in r.grad_fn.name() for r in results)  # or a view of what is
    return by_cudnn, results + list(torch.autograd.grad(results, wanted, grads))


def check(torch, mode, hidden, packed, options, report):
    """Numbers that bfloat16 holds, so that one answer of the CPU's serves all dtypes."""
    torch.manual_seed(0)
    net = network(torch, mode, INPUT, hidden, dtype=torch.float64, **options)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(p.bfloat16().double())
    shape = (BATCH, STEPS) if net.batch_first else (STEPS, BATCH)
    x = torch.randn(*shape, INPUT).bfloat16().double()
    parts = net.num_layers * (2 if net.bidirectional else 1)
    sizes = [net.proj_size or hidden] + ([hidden] if mode == "lstm" else [])
    state = [torch.randn(parts, BATCH, n).bfloat16().double() for n in sizes]
    _, want = run(torch, net, x, state, packed)
    place = f"{mode} {hidden} {'packed ' if packed else ''}{options}"
    for name, tf32, tolerance in DTYPES:
        dtype = getattr(torch, name)
        row = name + (" tf32" if tf32 else "")
        net = net.to("cuda", dtype)
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=tf32):
            try:
                here = [s.to("cuda", dtype) for s in state]
                used, got = run(torch, net, x.to("cuda", dtype), here, packed)
            except RuntimeError as error:
                refused = "does not take" in str(error)
                report(row, -1.0 if refused else float("inf"), f"{place}: {error}", True)
                continue
        with torch.no_grad():
            flat = net(x.to("cuda", dtype))[0]  # without a gradient, from zeros
        if not used or not bool(flat.isfinite().all()):
            report(row, float("inf"), f"{place}: {'no cuDNN' if not used else 'not finite'}", True)
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            off = float((a.cpu().double() - b).norm()) / max(float(b.norm()), 1e-30)
            # Rounding takes some of relu's arguments to the other side of its kink.
            allowed = tolerance * (4 if mode == "relu" and (tf32 or dtype.itemsize == 2) else 1)
            report(row, off, f"result {i} of {place}", not off <= allowed)
        net = net.to("cpu", torch.float64)


def answers(torch, few):
    began, rows, wrong, refused = time.time(), {}, [], []

    def report(row, off, where, bad):
        if off < 0:
            refused.append(f"REFUSED {row}: {where}")
            return
        count, worst, place = rows.get(row, (0, -1.0, ""))
        rows[row] = (count + 1, *((off, where) if not off <= worst else (worst, place)))
        if bad:
            wrong.append(f"WRONG {row}: off by {off:.2g}, {where}")

    print(f"cuDNN {torch.backends.cudnn.version()}")
    count = 0
    for case in cases(few):
        check(torch, *case, report)
        count += 1
    for line in wrong[:30] + refused[:10]:
        print(line)
    print(f"{'dtype':14} {'checked':>8} {'worst':>9}  where")
    for row, (n, off, where) in sorted(rows.items()):
        print(f"{row:14} {n:8} {off:9.1e}  {where[:90]}")
    end = f"{len(wrong)} wrong, {len(refused)} refused by cuDNN, {time.time() - began:.0f} s\n"
    print(f"{count} networks, {end}", flush=True)
    return not wrong


def milliseconds(torch, f):
    """Of one call, the median of some."""
    for _ in range(3):
        f()
    times = []
    for _ in range(12):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        f()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def measure(module, few):
    """One line of JSON for each dtype and kind of call; the same code for both frameworks."""
    torch = importlib.import_module(module)
    s = dict.fromkeys(SHAPE, 4) if few else SHAPE
    for mode, name, dropout in (
        ("lstm", "float32", 0.0),
        ("lstm", "bfloat16", 0.0),
        ("lstm", "float16", 0.0),
        ("gru", "float32", 0.0),
        ("lstm", "float32", 0.1),
    ):
        dtype = getattr(torch, name)
        torch.manual_seed(0)
        net = network(torch, mode, s["input"], s["hidden"], num_layers=s["layers"], dropout=dropout)
        net = net.to("cuda", dtype)
        x = torch.randn(s["steps"], s["batch"], s["input"]).to("cuda", dtype).requires_grad_()
        grad = torch.ones(s["steps"], s["batch"], s["hidden"]).to("cuda", dtype)

        def forward(net=net, x=x):
            with torch.no_grad():
                net(x)

        def both(net=net, x=x, grad=grad):
            torch.autograd.grad(net(x)[0], [x, *net.parameters()], grad)

        row = {"case": f"{mode} {name}" + (f" dropout {dropout}" if dropout else "")}
        row["forward"] = milliseconds(torch, forward)
        row["both"] = milliseconds(torch, both)
        print(json.dumps(row), flush=True)


def measured(module, few):
    environment = dict(os.environ)
    if module == "torch":
        environment.pop("PYTHONPATH", None)
    command = [sys.executable, os.path.abspath(__file__), "--measure", module] + ["--few"] * few
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        tail = done.stderr.strip().splitlines()
        print(f"{module} stopped: {tail[-1] if tail else done.returncode}")
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {r["case"]: r for r in rows}


def times(few):
    ours, theirs = measured("tessera", few), measured("torch", few)
    print(
        ", ".join(f"{k} {v}" for k, v in SHAPE.items()) + "; milliseconds, forward | with backward"
    )
    print(f"{'':24} {'Tessera':>16} {'PyTorch':>16} {'ratio':>12}")
    for case, a in ours.items():
        line = f"{case:24} {a['forward']:7.3f} |{a['both']:7.3f}"
        if b := theirs.get(case):
            line += f" {b['forward']:7.3f} |{b['both']:7.3f}"
            line += f" {a['forward'] / b['forward']:5.2f} |{a['both'] / b['both']:5.2f}"
        print(line)
    return bool(ours)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("answers", "times", "few"):
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--measure", choices=("tessera", "torch"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        return measure(asked.measure, asked.few)
    os.environ["TESSERA_CUDNN"] = "must"  # what it does not take is to be seen
    both = not (asked.answers or asked.times)
    good = True
    if asked.answers or both:
        good = answers(importlib.import_module("tessera"), asked.few)
    if asked.times or both:
        good = times(asked.few) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
