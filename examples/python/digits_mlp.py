"""Handwritten digits with a network of linear layers: over 97 % of unseen ones, in seconds.

Run it with `./dev run examples/python/digits_mlp.py [DEVICE]`, the CPU unless told. The data are
the 1797 digits that scikit-learn ships, 8 by 8 pixels each.
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from tessera.utils.progress import progress

try:
    from sklearn.datasets import load_digits
except ImportError:
    raise SystemExit("missing: scikit-learn, whose digits this learns (pip install scikit-learn)")

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16
labels = torch.tensor(digits.target)
train, test = random_split(TensorDataset(images, labels), [1437, 360])

model = nn.Sequential(
    nn.Linear(64, 256),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(256, 128),
    nn.ReLU(),
    nn.Linear(128, 10),
).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
criterion = nn.CrossEntropyLoss()

EPOCHS = 25
for epoch in range(1, EPOCHS + 1):
    model.train()
    total = 0.0
    bar = progress(DataLoader(train, batch_size=64, shuffle=True), f"epoch {epoch}/{EPOCHS}")
    for inputs, targets in bar:
        optimizer.zero_grad()
        loss = criterion(model(inputs.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item() * len(inputs)
        bar.set_postfix(loss=loss.item())
    if epoch % 5 == 0:
        print(f"epoch {epoch:2d}: loss {total / len(train):.4f}")

model.eval()
right = 0
with torch.no_grad():
    for inputs, targets in DataLoader(test, batch_size=120):
        right += (model(inputs.to(device)).argmax(dim=1).cpu() == targets).sum().item()
print(f"{right} of {len(test)} unseen digits are right: {right / len(test):.1%}")
assert right / len(test) >= 0.97
