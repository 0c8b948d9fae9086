"""Two LSTM layers add up the digits they read; RMSprop with momentum, gradients clipped."""

import torch
from steps import DTYPE, train
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 12)
        self.lstm = nn.LSTM(12, 24, num_layers=2, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, digits):
        out, (last, _) = self.lstm(self.table(digits))
        return self.head(out.mean(dim=1) + last[-1]).squeeze(1)


torch.manual_seed(13)
digits = torch.randint(0, 10, (96, 9))
total = digits.sum(dim=1).float() / 9 - 4.5
model = Net()

model, total = model.to(DTYPE), total.to(DTYPE)
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3, alpha=0.95, momentum=0.5)
batches = [(digits[i : i + 32], total[i : i + 32]) for i in range(0, 96, 32)]
train(model, optimizer, batches, lambda net, x, y: nn.functional.mse_loss(net(x), y), clip=1.0)
