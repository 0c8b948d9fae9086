"""Training steps with and without mixed precision: their time, and the most memory they take."""

import time

import tessera as torch
from tessera import nn

from .plot import Bars, Plot, table

_STEPS = 100


def _model(width):
    return nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )


def _train(device, dtype, width, batch, steps):
    """Seconds after each step, the last loss, and the peak of memory."""
    torch.manual_seed(0)
    model = _model(width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(device, enabled=dtype is torch.float16)
    criterion = nn.CrossEntropyLoss()
    x = torch.randn(batch, width, device=device)
    y = torch.randint(0, 10, (batch,), device=device)
    gpu = device == "cuda"

    def step():
        optimizer.zero_grad()
        with torch.autocast(device, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    for _ in range(3):
        step()
    if gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    after, begin = [], time.perf_counter()
    for i in range(1, steps + 1):
        loss = step()
        if i % 10 == 0:
            loss.item()  # waits for the device
            after.append((i, (time.perf_counter() - begin) * 1e3))
    return after, loss.item(), torch.cuda.max_memory_allocated() if gpu else 0


def run(quick):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    small = quick or device == "cpu" or torch.cuda.get_device_properties().is_virtual
    width, batch = (128, 64) if quick else (512, 256) if small else (4096, 4096)
    modes = {"float32": None, "autocast bfloat16": torch.bfloat16}
    if device == "cuda":
        modes["autocast float16 + GradScaler"] = torch.float16
    else:
        print("No GPU is there: measured on the CPU, where memory is not counted and float16 with")
        print(f"GradScaler is left out. {torch._C._cuda_why_unavailable()}\n")
    print(f"a network of three layers, {width} wide, batch {batch}, {_STEPS} steps")
    lines, peaks, rows, base = {}, {}, [], None
    for name, dtype in modes.items():
        lines[name], loss, peak = _train(device, dtype, width, batch, _STEPS)
        if device == "cuda":
            torch.cuda.empty_cache()
        total = lines[name][-1][1]
        peaks[name] = peak / 1e6
        base = base or (total, peak)
        memory = f"{peak / 1e6:.1f} MB" if peak else "not counted"
        less = f"{base[1] / peak:.2f} x" if peak else ""
        row = [name, f"{total:.1f} ms", f"{total / _STEPS:.3f} ms", f"{base[0] / total:.2f} x"]
        rows.append([*row, memory, less, f"{loss:.4f}"])
    head = ["", f"{_STEPS} steps", "a step", "faster by", "peak memory", "less by", "last loss"]
    print(table(head, rows))
    plots = [Plot("Time of training steps", "steps done", "milliseconds", lines)]
    if device == "cuda":
        plots.append(Bars("Peak memory", "MB", peaks))
    return plots
