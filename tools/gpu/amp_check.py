"""Training in mixed precision: losses, times and memory beside PyTorch's.

    python3 tools/gpu/amp_check.py              an MLP, a CNN and GPT-2's shape, in bf16 and fp16
    python3 tools/gpu/amp_check.py --few        small sizes, for a virtual or an emulated GPU
    python3 tools/gpu/amp_check.py --device cpu --few

Initial values and data are the same numbers in both (drawn on the CPU from one seed). PyTorch runs
where a plain `python3` of the same installation has one (or TORCH_PYTHON names one). The status is
1 if a loss is further from PyTorch's than PyTorch's own run with another order of sums may be:
3 % of the loss, or 0.02. Also what TensorFloat-32 changes in a product.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import time

SIZES = {
    "full": {"gpt": (50257, 768, 1024, 12, 12, 8), "cnn": (32, 64, 128), "mlp": (4096, 4096, 1024)},
    "few": {"gpt": (65, 64, 32, 4, 2, 8), "cnn": (8, 16, 16), "mlp": (16, 64, 64)},
}
STEPS = 30


def models(torch, sizes):
    """name: (module, batch(generator), loss)."""
    nn = torch.nn
    F = nn.functional

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, d = x.shape
            qkv = self.qkv(self.before(x)).split(d, -1)
            q, k, v = (p.view(b, t, self.heads, d // self.heads).transpose(1, 2) for p in qkv)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.after(x))))

    words, width, length, heads, layers, rows = sizes["gpt"]

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=0.02)
            self.head.weight = self.tokens.weight

        def forward(self, ids):
            x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    first, second, images = sizes["cnn"]

    def cnn():
        return nn.Sequential(
            nn.Conv2d(3, first, 3, padding=1), nn.BatchNorm2d(first), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(first, second, 3, padding=1), nn.BatchNorm2d(second), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(second, 10),
        )  # fmt: skip

    inputs, hidden, batch = sizes["mlp"]

    def mlp():
        return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def text(g):
        ids = torch.randint(0, words, (rows, length + 1), generator=g)
        ids[:, 1::2] = ids[:, 0:-1:2]  # every other word is the one before
        return ids[:, :-1], ids[:, 1:]

    def pictures(g):
        y = torch.randint(0, 10, (images,), generator=g)
        return torch.randn(images, 3, 32, 32, generator=g) * 0.3 + y.view(-1, 1, 1, 1) / 5, y

    def numbers(g):
        x = torch.randn(batch, inputs, generator=g)
        return x, x[:, :1] * x[:, 1:2]

    def by_class(out, y):
        return F.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))

    return {
        "mlp": (mlp, numbers, F.mse_loss, 1e-3),
        "cnn": (cnn, pictures, by_class, 3e-3),
        "gpt": (Gpt, text, by_class, 6e-4),
    }


def train(torch, device, dtype, make, batch, loss_of, lr):
    torch.manual_seed(0)
    model = make().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, enabled=dtype == torch.float16)
    losses, taken = [], []
    cuda = device == "cuda"
    data = [batch(torch.Generator().manual_seed(i)) for i in range(STEPS)]
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    for x, y in data:
        x, y = x.to(device), y.to(device)
        if cuda:
            torch.cuda.synchronize()
        began = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast(device, dtype=dtype):
            loss = loss_of(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        taken.append(time.perf_counter() - began)
    peak = torch.cuda.max_memory_allocated() / 2**20 if cuda else 0
    return {"losses": losses, "ms": 1e3 * sorted(taken)[STEPS // 2], "mib": peak}


def tf32(torch, device):
    """How far a product of float32 is from float64's, without TF32 and with it."""
    torch.manual_seed(0)
    a, b = torch.randn(512, 512), torch.randn(512, 512)
    exact = a.double() @ b.double()
    out = []
    for allowed in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = allowed
        got = (a.to(device) @ b.to(device)).cpu().double()
        out.append(((got - exact).norm() / exact.norm()).item())
    torch.backends.cuda.matmul.allow_tf32 = False
    return out


def run_here(module, device, few):
    torch = importlib.import_module(module)
    out = {}
    for name, (make, batch, loss_of, lr) in models(torch, SIZES["few" if few else "full"]).items():
        for dtype in ("bfloat16", "float16"):
            result = train(torch, device, getattr(torch, dtype), make, batch, loss_of, lr)
            out[f"{name} {dtype}"] = result
    out["tf32"] = tf32(torch, device)
    print("RESULT " + json.dumps(out))


def measured(module, options):
    environment = dict(os.environ)
    python = sys.executable
    if module == "torch":
        environment.pop("PYTHONPATH", None)
        python = os.environ.get("TORCH_PYTHON", python)
    command = [python, __file__, "--run", module, "--device", options.device]
    command += ["--few"] if options.few else []
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        print(f"{module} did not run: {done.stderr.strip().splitlines()[-1:]}")
        return {}
    return json.loads(lines[0].removeprefix("RESULT "))


def compare(ours, theirs):
    good = True
    print(f"{'':14} {'first and last loss':>20} {'ms':>9} {'MiB':>9}   beside PyTorch")
    for case, a in ours.items():
        if case == "tf32":
            continue
        first, last = a["losses"][0], a["losses"][-1]
        line = f"{case:14} {first:10.4f} {last:9.4f} {a['ms']:9.2f} {a['mib']:9.0f}"
        if b := theirs.get(case):
            off = max(
                abs(x - y) / max(0.03 * abs(y), 0.02) for x, y in zip(a["losses"], b["losses"])
            )
            good &= off < 1
            line += f"   {b['losses'][0]:.4f} {b['losses'][-1]:.4f}, time {a['ms'] / b['ms']:.2f} x"
            if b["mib"]:
                line += f", memory {a['mib'] / b['mib']:.2f} x"
            line += f", losses {'agree' if off < 1 else 'DIFFER'} ({off:.2f} of what may be)"
        print(line)
    plain, fast = ours["tf32"]
    print(f"a product of float32 is off by {plain:.1e}, with TF32 allowed by {fast:.1e}")
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run_here(options.run, options.device, options.few)
        return 0
    ours, theirs = measured("tessera", options), measured("torch", options)
    return 0 if ours and compare(ours, theirs) else 1


if __name__ == "__main__":
    sys.exit(main())
