"""What the tests of captured graphs share."""

import tessera as torch
from tessera import nn


def captured(function, **options):
    """The graph of a function, and what it gave."""
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g, **options):
        result = function()
    return g, result


def same(a, b):
    return torch.equal(a.cpu(), b.cpu())


def model_and_data(device, dropout=0.0):
    torch.manual_seed(1)
    layers = [nn.Linear(8, 32), nn.ReLU(), nn.Dropout(dropout), nn.LayerNorm(32), nn.Linear(32, 3)]
    model = nn.Sequential(*layers).to(device)
    torch.manual_seed(2)
    data = [(torch.randn(16, 8), torch.randint(0, 3, (16,))) for _ in range(20)]
    return model, [(x.to(device), t.to(device)) for x, t in data]
