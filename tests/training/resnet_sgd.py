"""Residual blocks, batches that a loader shuffles, label smoothing, steps of the learning rate."""

import torch
import torch.nn.functional as F
from steps import DTYPE, STEPS
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside)
        self.short = nn.Sequential()
        if stride != 1 or inside != outside:
            self.short = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x):
        out = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.relu(self.norm2(self.conv2(out)) + self.short(x))


torch.manual_seed(17)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, 1, 1, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU(inplace=True),
    Block(8, 8),
    Block(8, 16, 2),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(16, 5),
)
for module in model.modules():
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
data = TensorDataset(torch.randn(50, 3, 10, 10).to(DTYPE), torch.randint(0, 5, (50,)))
loader = DataLoader(data, batch_size=10, shuffle=True)
model = model.to(DTYPE).train()
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4, nesterov=True
)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [5, 8], gamma=0.1)
for _ in range(STEPS // len(loader)):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        print(repr(loss.item()))
    scheduler.step()
