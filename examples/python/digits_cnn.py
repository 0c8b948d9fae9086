"""Handwritten digits with convolutions, batch normalisation and a learning rate that changes.

Run it with `./dev run examples/python/digits_cnn.py [DEVICE]`, the CPU unless told. The data are
the 1797 digits that scikit-learn ships, 8 by 8 pixels each.
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from tessera.utils.progress import progress

try:
    from sklearn.datasets import load_digits
except ImportError:
    raise SystemExit("missing: scikit-learn, whose digits this learns (pip install scikit-learn)")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classify = nn.Sequential(nn.Dropout(0.3), nn.Linear(32 * 4 * 4, 10))

    def forward(self, images):
        return self.classify(self.features(images).flatten(1))


def accuracy(model, data, device):
    model.eval()
    right = 0
    with torch.no_grad():
        for inputs, targets in DataLoader(data, batch_size=120):
            right += (model(inputs.to(device)).argmax(dim=1).cpu() == targets).sum().item()
    return right / len(data)


device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
train, test = random_split(TensorDataset(images, torch.tensor(digits.target)), [1437, 360])

EPOCHS = 8
model = Net().to(device)
print(f"{sum(p.numel() for p in model.parameters())} parameters")
loader = DataLoader(train, batch_size=32, shuffle=True, drop_last=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=EPOCHS * len(loader))

for epoch in range(1, EPOCHS + 1):
    model.train()
    bar = progress(loader, f"epoch {epoch}/{EPOCHS}")
    for inputs, targets in bar:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(inputs.to(device)), targets.to(device), label_smoothing=0.05)
        loss.backward()
        optimizer.step()
        scheduler.step()
        bar.set_postfix(loss=loss.item())
    if epoch % 2 == 0:
        print(
            f"epoch {epoch:2d}: loss {loss.item():.4f}, {accuracy(model, test, device):.1%} right"
        )

share = accuracy(model, test, device)
print(f"{share:.1%} of {len(test)} unseen digits are right")
assert share >= 0.97
