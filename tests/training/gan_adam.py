"""A generator and a discriminator against each other: transposed convolutions, two optimizers."""

import torch
from steps import DTYPE, STEPS
from torch import nn

torch.manual_seed(16)
generator = nn.Sequential(
    nn.ConvTranspose2d(8, 16, 4, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(True),
    nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1, bias=False),
    nn.Tanh(),
)
discriminator = nn.Sequential(
    nn.Conv2d(1, 16, 4, stride=2, padding=1, bias=False),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(16, 1, 4, bias=False),
    nn.Sigmoid(),
)


def start(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.05)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


generator.apply(start).to(DTYPE)
discriminator.apply(start).to(DTYPE)
real = (torch.rand(32, 1, 8, 8) * 2 - 1).to(DTYPE)
ones, zeros = torch.ones(32, dtype=DTYPE), torch.zeros(32, dtype=DTYPE)
criterion = nn.BCELoss()
tells = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
makes = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
for _ in range(STEPS):
    fake = generator(torch.randn(32, 8, 1, 1).to(DTYPE))
    discriminator.zero_grad()
    told = criterion(discriminator(real).view(-1), ones)
    told = told + criterion(discriminator(fake.detach()).view(-1), zeros)
    told.backward()
    tells.step()
    generator.zero_grad()
    made = criterion(discriminator(fake).view(-1), ones)
    made.backward()
    makes.step()
    print(repr(told.item() + made.item()))
