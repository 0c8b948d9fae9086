"""A variational autoencoder: noise is drawn at every step."""

import torch
import torch.nn.functional as F
from steps import DTYPE, train
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(64, 40)
        self.mean, self.spread = nn.Linear(40, 8), nn.Linear(40, 8)
        self.decode = nn.Sequential(nn.Linear(8, 40), nn.ReLU(), nn.Linear(40, 64), nn.Sigmoid())

    def forward(self, x):
        hidden = F.relu(self.encode(x))
        mean, spread = self.mean(hidden), self.spread(hidden)
        deviation = torch.exp(0.5 * spread)
        return self.decode(mean + deviation * torch.randn_like(deviation)), mean, spread


def loss_of(net, x):
    seen, mean, spread = net(x)
    divergence = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
    return F.binary_cross_entropy(seen, x, reduction="sum") + divergence


torch.manual_seed(15)
images = torch.rand(96, 64).to(DTYPE)
model = Autoencoder().to(DTYPE)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
train(model, optimizer, [(part,) for part in images.split(24)], loss_of)
