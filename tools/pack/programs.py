"""Programs as they are written: networks in training, with optimizers, autocast and metrics."""

from common import DEVICE, FLOATS, look, number, station, tensor

import tessera as torch
from tessera import nn
from tessera.nn import functional as F

# Inputs, hidden, outputs.
PERCEPTRONS = (
    (20, 64, 10), (784, 128, 10), (784, 512, 10), (10, 32, 2), (2, 16, 1), (1, 8, 1),
    (64, 256, 100), (1000, 1000, 1000), (13, 50, 3),
)  # fmt: skip
# Vocabulary, width, heads, length, batch.
LANGUAGE_MODELS = (
    (65, 32, 4, 32, 16), (65, 128, 4, 64, 32), (100, 64, 4, 128, 8), (1000, 256, 8, 256, 4),
    (50257, 768, 12, 1024, 1), (50304, 768, 12, 1024, 2),
)  # fmt: skip
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(
        p, lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True
    ),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=1e-3),
}


def train(model, inputs, loss_of, optimizer="adamw", dtype=torch.float32, clip=False, steps=2):
    model.to(DEVICE)
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    scaler = torch.amp.GradScaler(DEVICE, enabled=dtype is torch.float16)
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast(DEVICE, dtype=dtype, enabled=dtype is not torch.float32):
            out = model(*inputs)
            loss = loss_of(out)
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        loss.item()
    model.eval()
    with torch.no_grad():
        out = model(*inputs)
        out = out[0] if isinstance(out, tuple) else out
        look(out, out.argmax(-1), (out.argmax(-1) == 0).float().mean(), (out.argmax(-1) == 0).sum())
        (out.argmax(-1) == 0).sum().item()


@station
def perceptrons():
    for dtype in FLOATS:
        for width, hidden, classes in PERCEPTRONS:
            for batch in (1, 16, 32, 64, 100, 256, 1024):
                layers = nn.Sequential(
                    nn.Linear(width, hidden), nn.ReLU(), nn.LayerNorm(hidden), nn.Dropout(0.1),
                    nn.Linear(hidden, hidden),
                    nn.BatchNorm1d(hidden) if batch > 1 else nn.Identity(),
                    nn.GELU(), nn.Linear(hidden, classes),
                )  # fmt: skip
                target = number(batch)
                if classes == 1:
                    goal = tensor(batch, 1)
                    train(
                        layers,
                        [tensor(batch, width)],
                        lambda y, g=goal: F.mse_loss(y, g),
                        "sgd",
                        dtype,
                    )
                    train(
                        layers,
                        [tensor(batch, width)],
                        lambda y, g=goal: F.binary_cross_entropy_with_logits(y, g),
                        "adam",
                        dtype,
                    )
                else:
                    train(
                        layers,
                        [tensor(batch, width)],
                        lambda y, t=target: F.cross_entropy(y, t),
                        "adamw",
                        dtype,
                        True,
                    )
    for name in OPTIMIZERS:
        layers = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 10), nn.LogSoftmax(-1))
        train(layers, [tensor(32, 20)], lambda y: F.nll_loss(y, number(32)), name)


@station
def clipping():
    """Norms of several gradients, which are taken in one launch, of every size."""
    for dtype in FLOATS:
        for power in range(25):
            for n in {1 << power, (1 << power) + 1, 3 << power}:
                pair = [tensor(n, dtype=dtype, grad=True) for _ in range(2)]
                for p in pair:
                    p.grad = torch.empty_like(p)
                look(nn.utils.clip_grad_norm_(pair, 1.0), *(p.grad for p in pair))
                look(nn.utils.clip_grad_norm_(pair, 1.0, float("inf")), *(p.grad for p in pair))


@station
def networks():
    def block(i, o):
        return (nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2))

    for dtype in FLOATS:
        for side, channels, classes, batch in (
            (16, 3, 10, 32),
            (28, 1, 10, 64),
            (32, 3, 100, 128),
            (64, 3, 1000, 8),
        ):
            for last in (False, True):
                model = nn.Sequential(
                    *block(channels, 8), *block(8, 16), nn.Conv2d(16, 32, 3, padding=1, bias=False),
                    nn.BatchNorm2d(32), nn.SiLU(), nn.Dropout2d(0.1),
                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes),
                )  # fmt: skip
                x = tensor(batch, channels, side, side)
                if last:
                    model, x = (t.to(memory_format=torch.channels_last) for t in (model, x))
                train(
                    model, [x], lambda y, b=batch: F.cross_entropy(y, number(b)), "momentum", dtype
                )
        small = nn.Sequential(
            nn.Conv2d(1, 6, 5),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.Sigmoid(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(256, 120),
            nn.ReLU(),
            nn.Linear(120, 10),
        )
        train(
            small, [tensor(64, 1, 28, 28)], lambda y: F.cross_entropy(y, number(64)), "adam", dtype
        )


class Residual(nn.Module):
    def __init__(self, i, o, step):
        super().__init__()
        self.one = nn.Conv2d(i, o, 3, step, 1, bias=False)
        self.two = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.norm, self.last = nn.BatchNorm2d(o), nn.BatchNorm2d(o)
        self.down = nn.Sequential(nn.Conv2d(i, o, 1, step, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        return F.relu(self.last(self.two(F.relu(self.norm(self.one(x))))) + self.down(x))


@station
def residual_networks():
    for dtype in FLOATS:
        for side, batch in ((32, 64), (224, 4)):
            model = nn.Sequential(
                nn.Conv2d(3, 64, 7, 2, 3, bias=False),
                nn.BatchNorm2d(64),
                nn.ReLU(True),
                nn.MaxPool2d(3, 2, 1),
                Residual(64, 64, 1),
                Residual(64, 128, 2),
                Residual(128, 256, 2),
                Residual(256, 512, 2),
                nn.AdaptiveAvgPool2d((1, 1)),
                nn.Flatten(),
                nn.Linear(512, 1000),
            )
            x = tensor(batch, 3, side, side)
            train(model, [x], lambda y, b=batch: F.cross_entropy(y, number(b)), "momentum", dtype)


class Block(nn.Module):
    """Of a language model: attention by the products themselves, or by the one operator."""

    def __init__(self, width, heads, whole):
        super().__init__()
        self.heads, self.whole = heads, whole
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            y.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for y in self.qkv(self.first(x)).split(c, dim=2)
        )
        if self.whole:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.tril(torch.ones(t, t, device=x.device))
            scores = (q @ k.transpose(-2, -1)) / (c // self.heads) ** 0.5
            y = (
                F.dropout(
                    F.softmax(scores.masked_fill(mask == 0, float("-inf")), -1), 0.1, self.training
                )
                @ v
            )
        x = x + F.dropout(self.out(y.transpose(1, 2).reshape(b, t, c)), 0.1, self.training)
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


class Language(nn.Module):
    def __init__(self, vocabulary, width, heads, length, whole):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, whole) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        y = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


@station
def language_models():
    for dtype in FLOATS:
        for vocabulary, width, heads, length, batch in LANGUAGE_MODELS:
            for whole in (False, True):
                model = Language(vocabulary, width, heads, length, whole)
                target = number(batch * length)
                train(
                    model,
                    [number(batch, length)],
                    lambda y, v=vocabulary, t=target: F.cross_entropy(y.view(-1, v), t),
                    "adamw",
                    dtype,
                    True,
                )
                logits = model(number(1, length))[:, -1, :] / 0.8
                best, _ = torch.topk(logits, 10)
                p = torch.softmax(logits.masked_fill(logits < best[:, [-1]], -float("inf")), -1)
                look(torch.cat((number(1, length), torch.multinomial(p, 1)), 1))


@station
def transformers():
    for dtype in FLOATS:
        for width, heads, length, batch in (
            (32, 4, 12, 4),
            (64, 4, 20, 32),
            (512, 8, 50, 8),
            (768, 12, 128, 4),
        ):
            for activation in ("relu", "gelu"):
                layer = nn.TransformerEncoderLayer(
                    width, heads, 2 * width, batch_first=True, activation=activation
                )
                model = nn.Sequential(layer, nn.Linear(width, 10))
                goal = tensor(batch, length, 10)
                x = tensor(batch, length, width)
                train(model, [x], lambda y, g=goal: F.mse_loss(y, g), "adam", dtype)


@station
def recurrent_networks():
    for dtype in FLOATS:
        for cell in (nn.LSTM, nn.GRU, nn.RNN):
            for width, hidden, length, batch in ((8, 32, 20, 16), (64, 128, 50, 32)):
                model = cell(width, hidden, num_layers=2, batch_first=True)
                x = tensor(batch, length, width)
                train(model, [x], lambda y: y[0].pow(2).mean(), "adam", dtype)


@station
def autoencoders():
    """Losses that compare, and a generator with transposed convolutions."""
    for dtype in FLOATS:
        model = nn.Sequential(
            nn.Conv2d(3, 16, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.ConvTranspose2d(16, 3, 4, 2, 1),
            nn.Tanh(),
        )
        x = tensor(16, 3, 32, 32)
        for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
            train(model, [x], lambda y, f=loss, x=x: f(y, x), "adam", dtype)
        coder, logits = nn.Linear(784, 40), nn.Linear(20, 784)

        def variational(flat, coder=coder, logits=logits):
            mean, spread = coder(flat).chunk(2, -1)
            z = mean + torch.randn_like(mean) * (0.5 * spread).exp()
            loss = F.binary_cross_entropy_with_logits(logits(z), flat, reduction="sum")
            return loss - 0.5 * (1 + spread - mean**2 - spread.exp()).sum()

        both = nn.ModuleList((coder, logits)).to(DEVICE)
        with torch.autocast(DEVICE, dtype=dtype, enabled=dtype is not torch.float32):
            loss = variational(tensor(64, 784))
        loss.backward()
        torch.optim.Adam(both.parameters()).step()


@station
def looks():
    """What is asked of numbers between two steps: shown, compared, counted."""
    for dtype in FLOATS:
        for n in (10, 100, 1000, 4096, 100000):
            x = tensor(n, dtype=dtype)
            look(x.sum(), x.mean(), x.max(), x.min(), (x > 0).sum(), (x > 0).float().mean())
            look(
                (x - x.mean()) / x.std(), x.exp().sum(), x.sigmoid().sum(), (x * x).sum(), x.dot(x)
            )
            look(
                x.isnan().any(),
                torch.allclose(x, x),
                torch.equal(x, x),
                x.abs().max(),
                (x**2).mean(),
            )
            repr(x)
        a = tensor(64, 64, dtype=dtype)
        look(
            a @ a,
            a.mm(a),
            a.t().contiguous(),
            a.to(torch.float32),
            a.to(torch.int64),
            a.to(torch.bool),
        )
        look(
            a.tolist(),
            torch.einsum("ij,jk->ik", a, a),
            a.norm(),
            torch.trace(a),
            a.diag(),
            a.triu(),
        )
        look(torch.outer(a[0], a[0]), F.cosine_similarity(a, a), torch.cdist(a, a))
