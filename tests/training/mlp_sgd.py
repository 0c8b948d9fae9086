"""Three linear layers on points in a spiral, with SGD, momentum and weight decay."""

import math

import torch
from steps import DTYPE, train
from torch import nn

torch.manual_seed(11)
radius, noise = torch.rand(192).to(DTYPE) * 3 + 0.3, torch.randn(192).to(DTYPE) * 0.1
label = torch.randint(0, 3, (192,))
angle = radius * 1.5 + label.to(DTYPE) * (2 * math.pi / 3) + noise
points = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)
model = nn.Sequential(
    nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.0), nn.Linear(64, 3)
)

model = model.to(DTYPE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
batches = [(points[i : i + 64], label[i : i + 64]) for i in range(0, 192, 64)]
train(model, optimizer, batches, lambda net, x, y: nn.functional.cross_entropy(net(x), y))
