"""Memory and time of training steps beside PyTorch's, in turns.

    python3 tools/gpu/training_memory.py            three turns each, the median is shown
    python3 tools/gpu/training_memory.py --few      small sizes, for a virtual or emulated GPU

An MLP, ResNet-50, a small CNN and GPT-2's shape, in the precisions that people train them in. Peaks
are of `max_memory_allocated` over steps after the second: what autotuning took once is not in them.
The status is 1 if a step of ours needs more than PyTorch's.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time

import amp_check

SIZES = {
    "full": {"mlp": (1024, 4096, 4096), "resnet": (128, 224), "steps": 8},
    "few": {"mlp": (32, 64, 64), "resnet": (2, 32), "steps": 2},
}
GPT = {"full": (50304, 768, 1024, 12, 12, 16), "few": amp_check.SIZES["few"]["gpt"]}


def resnet50(nn):
    class Bottleneck(nn.Module):
        def __init__(self, width, inner, stride):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner),
                nn.ReLU(inplace=True),
                nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner),
                nn.ReLU(inplace=True),
                nn.Conv2d(inner, 4 * inner, 1, bias=False), nn.BatchNorm2d(4 * inner),
            )  # fmt: skip
            self.side = nn.Identity()
            if stride != 1 or width != 4 * inner:
                side = nn.Conv2d(width, 4 * inner, 1, stride, bias=False)
                self.side = nn.Sequential(side, nn.BatchNorm2d(4 * inner))
            self.end = nn.ReLU(inplace=True)

        def forward(self, x):
            return self.end(self.body(x) + self.side(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, 1))
    width = 64
    for inner, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(width, inner, stride if i == 0 else 1))
            width = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))


def cases(torch, which):
    """(name, model, batch, loss, optimizer, dtype of autocast or None)."""
    nn, F, device = torch.nn, torch.nn.functional, "cuda"
    sizes = SIZES[which]
    shared = amp_check.models(torch, {**amp_check.SIZES[which], "gpt": GPT[which]})
    adamw = lambda p: torch.optim.AdamW(p, lr=1e-4)  # noqa: E731
    sgd = lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9)  # noqa: E731
    inputs, hidden, rows = sizes["mlp"]

    def mlp():
        layers = [nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU()]
        return nn.Sequential(*layers, nn.Linear(hidden, inputs))

    def numbers():
        return torch.randn(rows, inputs, device=device), torch.randn(rows, inputs, device=device)

    def pictures():
        count, side = sizes["resnet"]
        x = torch.randn(count, 3, side, side, device=device)
        return x, torch.randint(0, 1000, (count,), device=device)

    def given(name):
        make, batch, loss, _ = shared[name]
        return make, lambda: [t.to(device) for t in batch(torch.Generator().manual_seed(0))], loss

    for dtype in (None, torch.bfloat16, torch.float16):
        yield "mlp", mlp, numbers, F.mse_loss, adamw, dtype
    for dtype in (None, torch.bfloat16):
        yield "resnet50", lambda: resnet50(nn), pictures, F.cross_entropy, sgd, dtype
    for dtype in (torch.bfloat16, torch.float16):
        yield "cnn", *given("cnn"), adamw, dtype
    yield "gpt2", *given("gpt"), adamw, torch.bfloat16


def measure(torch, steps, make, batch, loss_of, optimizer_of, dtype):
    torch.manual_seed(0)
    model = make().to("cuda")
    optimizer = optimizer_of(model.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=dtype == torch.float16)
    x, y = batch()

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = loss_of(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    for _ in range(4):
        step()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    step().item()  # takes the memory again
    began = time.perf_counter()
    for _ in range(steps):
        loss = step()
    loss = loss.item()
    taken = (time.perf_counter() - began) / steps
    return {
        "ms": taken * 1e3,
        "allocated": torch.cuda.max_memory_allocated() / 2**20,
        "reserved": torch.cuda.max_memory_reserved() / 2**20,
        "loss": loss,
    }


def run_here(module, which):
    torch = importlib.import_module(module)
    out = {}
    for name, *rest, dtype in cases(torch, which):
        kind = "fp32" if dtype is None else {"bfloat16": "bf16", "float16": "fp16"}[str(dtype)[6:]]
        out[f"{name} {kind}"] = measure(torch, SIZES[which]["steps"], *rest, dtype)
        torch.cuda.empty_cache()
    print("RESULT " + json.dumps(out))


def in_its_own_process(module, which):
    environment, python = dict(os.environ), sys.executable
    if module == "torch":
        environment.pop("PYTHONPATH", None)
        python = os.environ.get("TORCH_PYTHON", python)
    command = [python, __file__, "--run", module] + (["--few"] if which == "few" else [])
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    print(f"{module} did not run: {done.stderr.strip()[-400:]}")
    return {}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    which = "few" if options.few else "full"
    if options.run:
        run_here(options.run, which)
        return 0
    theirs, ours = [], []
    for _ in range(options.turns):
        theirs.append(in_its_own_process("torch", which))
        ours.append(in_its_own_process("tessera", which))

    def middle(runs, case, what):
        return statistics.median(run[case][what] for run in runs if case in run)

    good = bool(ours[0])
    print(
        f"{'':15} {'ms':>8} {'PyTorch':>8} {'MiB':>8} {'PyTorch':>8} {'reserved':>9} {'PyTorch':>8}"
    )
    for case in ours[0]:
        line = f"{case:15}"
        for what in ("ms", "allocated", "reserved"):
            line += f" {middle(ours, case, what):8.{2 if what == 'ms' else 0}f}"
            if any(case in run for run in theirs):
                line += f" {middle(theirs, case, what):8.{2 if what == 'ms' else 0}f}"
        if all(case in run for run in theirs):
            good &= middle(ours, case, "allocated") <= middle(theirs, case, "allocated")
            line += f"   losses {ours[0][case]['loss']:.4f} {theirs[0][case]['loss']:.4f}"
        print(line)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
