"""How long operators wait for the compiler: ordinary programs with an empty cache, then once more.

    python3 tools/gpu/compile_times.py [--most 60] [--run PROGRAM ARGUMENT...]

Prints how many kernels somebody waited for, the longest wait of each kind (for one to be compiled,
for one that is being compiled, or to be loaded) and every wait above --most milliseconds by name;
then what a second process compiled, which should be nothing. Tessera must be importable, and a pack
beside it (`./dev pack`). --run runs another program instead of these. The status is 1 if there was
a wait above --most, or the second process compiled anything.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import tessera as torch
from tessera import nn
from tessera.nn import functional as F

DEVICE = "cuda"


def chains():
    a, b, c = (torch.rand(256, 256, device=DEVICE) for _ in range(3))
    for dtype in (torch.float32, torch.float16):
        a, b, c = a.to(dtype), b.to(dtype), c.to(dtype)
        for _ in range(5):
            y1 = a + b + c
            y2 = y1 * a
            y3 = y2 - b
            y = (y3 + y2 + y3) + (0.33 * a + 0.66 * b + c * 0.9)
            y.data_ptr()


def train(model, x, target, optimizer, loss_of, dtype, clip=False):
    scaler = torch.amp.GradScaler("cuda", enabled=dtype is torch.float16)
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=dtype, enabled=dtype is not torch.float32):
            loss = loss_of(model(x), target)
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        loss.item()


def training():
    labels = torch.randint(0, 10, (32,), device=DEVICE)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        mlp = nn.Sequential(
            nn.Linear(20, 64), nn.GELU(), nn.LayerNorm(64), nn.Dropout(0.1), nn.Linear(64, 10)
        ).to(DEVICE)
        x = torch.randn(32, 20, device=DEVICE)
        train(mlp, x, labels, torch.optim.AdamW(mlp.parameters()), F.cross_entropy, dtype, True)
        cnn = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(8, 10),
        ).to(DEVICE)  # fmt: skip
        x = torch.randn(32, 3, 16, 16, device=DEVICE)
        sgd = torch.optim.SGD(cnn.parameters(), lr=0.1, momentum=0.9)
        train(cnn, x, labels, sgd, F.cross_entropy, dtype)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
        former = nn.Sequential(layer, nn.Linear(32, 10)).to(DEVICE)
        x = torch.randn(4, 12, 32, device=DEVICE)
        target = torch.randn(4, 12, 10, device=DEVICE)
        train(former, x, target, torch.optim.Adam(former.parameters()), F.mse_loss, dtype)


def looks():
    x = torch.randn(1000, device=DEVICE)
    for y in ((x.sin() + x.cos().tanh()).log1p().sum(), torch.softmax(x, -1).max(), x.std(),
              x.sort()[0][0], (x > 0).float().mean(), torch.logsumexp(x, 0), x.cumsum(0)[-1],
              F.gelu(x).sum(), torch.sigmoid(x).exp().sum(), x.topk(5)[0].sum()):  # fmt: skip
        y.item()


def rarities():
    """What the pack's tour has not met in these forms: odd sizes, dtypes, and much at once."""
    x = torch.randn(37, 11, 5, device=DEVICE)
    for dtype in (torch.float64, torch.int32, torch.bfloat16):
        y = (x * 3).to(dtype)
        for dims in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
            (y.sum(dims).sum() + y.amax(dims).sum() + (y > 0).all(0).sum()).item()
    z = torch.complex(x, x.flip(0))
    for _ in range(3):
        ((z * (1 + 2j) + z.conj()).abs().sum() + torch.view_as_real(z * z).mean()).item()
    big = torch.rand(1 << 14, 1 << 14, device=DEVICE)
    for _ in range(2):
        (torch.softmax(big * 0.3 + 1, -1) * 2).sum().item()


def waits_of(folder, name, command):
    log = os.path.join(folder, name)
    environment = dict(os.environ, TESSERA_CACHE_DIR=os.path.join(folder, "cache"))
    environment["TESSERA_COMPILE_LOG"] = log
    subprocess.run(command, env=environment, check=True)
    rows = []
    for line in open(log) if os.path.exists(log) else ():
        ms, _, how, what = line.rstrip("\n").split(" ", 3)
        rows.append((float(ms), how, what))
    return rows


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--most", type=float, default=60)
    options.add_argument("--work", action="store_true")
    options.add_argument("--run", nargs=argparse.REMAINDER, default=[])
    options = options.parse_args()
    if options.work:
        chains()
        training()
        looks()
        rarities()
        return 0
    command = options.run or [sys.executable, __file__, "--work"]
    with tempfile.TemporaryDirectory() as folder:
        first, again = waits_of(folder, "first", command), waits_of(folder, "again", command)
    for name, rows in (("first process", first), ("second process", again)):
        words = []
        for how in ("compiled", "later", "loaded"):
            waits = [ms for ms, kind, _ in rows if kind == how]
            words.append(
                f"{len(waits)} {how}" + (f" (longest {max(waits):.1f} ms)" if waits else "")
            )
        print(f"{name}: {', '.join(words)}")
    late = sorted((row for row in first + again if row[0] > options.most), reverse=True)
    for ms, how, what in late:
        print(f"  {ms:6.1f} ms  {how} {what}")
    compiled = [row for row in again if row[1] != "loaded"]
    return 1 if late or compiled else 0


if __name__ == "__main__":
    sys.exit(main())
