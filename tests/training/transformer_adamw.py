"""A causal transformer learns to repeat a sequence of letters; AdamW and a schedule, no dropout."""

import torch
from steps import DTYPE, STEPS, train
from torch import nn

LETTERS, LENGTH, WIDTH = 11, 10, 32


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(LETTERS, WIDTH)
        self.place = nn.Parameter(torch.randn(LENGTH - 1, WIDTH) * 0.1)
        layer = nn.TransformerEncoderLayer(
            WIDTH, nhead=4, dim_feedforward=64, dropout=0.0, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.head = nn.Linear(WIDTH, LETTERS)

    def forward(self, letters):
        mask = torch.triu(torch.ones(LENGTH - 1, LENGTH - 1, dtype=torch.bool), diagonal=1)
        return self.head(self.encoder(self.letter(letters) + self.place, mask))


def loss_of(net, letters):
    scores = net(letters[:, :-1])
    return nn.functional.cross_entropy(scores.flatten(0, 1), letters[:, 1:].flatten())


torch.manual_seed(14)
half = torch.randint(0, LETTERS, (96, LENGTH // 2))
letters = torch.cat([half, half], dim=1)
model = Net()

model = model.to(DTYPE)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
train(model, optimizer, [(part,) for part in letters.split(32)], loss_of, scheduler=scheduler)
