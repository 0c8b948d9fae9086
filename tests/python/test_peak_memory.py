"""Deferral never needs more device memory than eager execution: peaks of ten networks."""

import gc

import pytest
from conftest import KIND

import tessera as torch
from tessera import _C, fuse, nn
from tessera.nn import functional as F

pytestmark = pytest.mark.skipif(KIND != "virtual", reason="counts the bytes of a virtual GPU")


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(256, 128))

    def forward(self, x):
        for _ in range(3):
            x = torch.tanh(x * self.scale + 1) - torch.sigmoid(x)
        return x


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 128)

    def forward(self, x):
        x = F.softmax(F.gelu(torch.relu(self.linear(x))), -1)
        return F.layer_norm(x, (128,))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, padding=1)
        self.deep = nn.Conv2d(8, 16, 3, padding=1)
        self.back = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.last = nn.Conv2d(16, 2, 3, padding=1)

    def forward(self, x):
        a = F.relu(self.down(x))
        b = F.relu(self.deep(F.max_pool2d(a, 2)))
        return self.last(torch.cat([a, F.relu(self.back(b))], 1))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(16) for _ in range(4))
        self.convs = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1) for _ in range(4))
        self.last = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.first(x))
        for i in (0, 2):
            y = F.relu(self.norms[i](self.convs[i](x)))
            x = F.relu(x + self.norms[i + 1](self.convs[i + 1](y)))
        return self.last(x.mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(32, 64, batch_first=True)
        self.gru = nn.GRU(64, 32, batch_first=True)

    def forward(self, x):
        return self.gru(self.lstm(x)[0])[0]


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(500, 64)
        self.hidden = nn.Linear(64, 128)
        self.last = nn.Linear(128, 50)

    def forward(self, x):
        return self.last(F.dropout(F.relu(self.hidden(self.table(x).mean(1))), 0.1))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = nn.Linear(64, 192)
        self.out = nn.Linear(64, 64)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, 16)).transpose(1, 2) for t in self.both(x).chunk(3, -1))
        weights = torch.softmax(q @ k.transpose(-2, -1) / 4, -1)
        return x + self.out((weights @ v).transpose(1, 2).flatten(2))


def mlp():
    return nn.Sequential(*(nn.Sequential(nn.Linear(128, 128), nn.GELU()) for _ in range(4)))


def convolutions():
    layers = [nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 36, 10))


def transformer():
    return nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)


def numbers(*shape):
    return lambda: torch.rand(*shape)


NETWORKS = {
    "pointwise chain": (Chain, numbers(256, 128)),
    "norms": (Norms, numbers(512, 128)),
    "mlp": (mlp, numbers(512, 128)),
    "convolutions": (convolutions, numbers(8, 3, 16, 16)),
    "u-net": (UNet, numbers(4, 3, 32, 32)),
    "transformer": (transformer, numbers(8, 32, 64)),
    "recurrent": (Recurrent, numbers(8, 12, 32)),
    "residual": (Residual, numbers(4, 3, 16, 16)),
    "classifier": (Classifier, lambda: torch.randint(0, 500, (64, 20))),
    "attention": (Attention, numbers(8, 64, 64)),
}


def loss_of(name, out):
    if name == "classifier":
        return F.cross_entropy(out, torch.arange(64, device=out.device) % 50)
    return out.square().mean()


def train(name, model, x):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(name, model(x)).backward()
        optimizer.step()


def infer(name, model, x):
    model.eval()
    with torch.no_grad():
        for _ in range(3):
            loss_of(name, model(x)).item()


def peak_of(name, work, mode):
    """Bytes beyond those held at the start: the most in use at once, and what eager would hold."""
    make, inputs = NETWORKS[name]
    before = fuse.mode()
    fuse.set_mode(mode)
    try:
        torch.manual_seed(0)
        model, x = make().to("cuda"), inputs().to("cuda")
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        start = torch.cuda.memory_allocated()
        work(name, model, x)
        torch.cuda.synchronize()
        used = torch.cuda.memory_stats()["active_bytes.all.peak"] - start
        assert torch.cuda.max_memory_allocated() - start == used
        return used, _C._cuda_usage(0)["peak"] - start
    finally:
        fuse.set_mode(before)
        del model, x
        gc.collect()


@pytest.mark.parametrize("work", [train, infer])
@pytest.mark.parametrize("name", NETWORKS)
def test_peak_is_never_above_that_of_eager_execution(accelerator, name, work):
    eager, _ = peak_of(name, work, "off")
    deferred, counted = peak_of(name, work, "on")
    assert deferred <= eager
    assert counted <= eager  # the figure that deferral goes by
