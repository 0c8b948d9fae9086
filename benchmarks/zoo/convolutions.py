"""ResNet-50, ConvNeXt-T, a diffusion U-Net and a GAN, at public sizes."""

import torch
from torch import nn

from . import Workload

F = nn.functional


class Bottleneck(nn.Module):
    def __init__(self, width, inner, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner),
            nn.ReLU(inplace=True),
            nn.Conv2d(inner, 4 * inner, 1, bias=False), nn.BatchNorm2d(4 * inner),
        )  # fmt: skip
        self.side = nn.Identity()
        if stride != 1 or width != 4 * inner:
            convolution = nn.Conv2d(width, 4 * inner, 1, stride, bias=False)
            self.side = nn.Sequential(convolution, nn.BatchNorm2d(4 * inner))

    def forward(self, x):
        return F.relu(self.body(x) + self.side(x))


def resnet50(classes=1000):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, 1))
    width = 64
    for inner, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(width, inner, stride if i == 0 else 1))
            width = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def images(device, batch, side):
    x = torch.randn(batch, 3, side, side, device=device)
    return x, torch.randint(0, 1000, (batch,), device=device)


def resnet_train(device, small, dtype, channels_last):
    batch, side = (4, 96) if small else (128, 224)
    model = resnet50().to(device)
    x, y = images(device, batch, side)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    return Workload(
        model, lambda m: F.cross_entropy(m(x), y), dtype=dtype,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
        items=batch, unit="images",
    )  # fmt: skip


def resnet50_float32(device, small):
    return resnet_train(device, small, None, False)


def resnet50_bf16(device, small):
    return resnet_train(device, small, torch.bfloat16, False)


def resnet50_channels_last(device, small):
    return resnet_train(device, small, torch.bfloat16, True)


def resnet50_latency(device, small):
    model = resnet50().to(device).eval()
    x, _ = images(device, 1, 96 if small else 224)
    return Workload(model, lambda m: m(x), training=False, items=1, unit="images")


class ChannelNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.depthwise = nn.Conv2d(d, d, 7, padding=3, groups=d)
        self.norm = nn.LayerNorm(d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.scale = nn.Parameter(torch.full((d,), 1e-6))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.down(F.gelu(self.up(y))) * self.scale
        return x + y.permute(0, 3, 1, 2)


def convnext(depths, widths, classes=1000):
    layers = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0])]
    for i, (depth, width) in enumerate(zip(depths, widths)):
        if i:
            layers += [ChannelNorm(widths[i - 1]), nn.Conv2d(widths[i - 1], width, 2, 2)]
        layers += [ConvNeXtBlock(width) for _ in range(depth)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(widths[-1])]
    return nn.Sequential(*layers, *head, nn.Linear(widths[-1], classes))


def convnext_train(device, small):
    depths, widths = ((1, 1, 3, 1), (32, 64, 128, 256)) if small else (
        (3, 3, 9, 3), (96, 192, 384, 768))  # fmt: skip
    batch, side = (4, 96) if small else (64, 224)
    model = convnext(depths, widths).to(device)
    x, y = images(device, batch, side)
    return Workload(
        model, lambda m: F.cross_entropy(m(x), y), dtype=None if small else torch.bfloat16,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4), items=batch, unit="images",
    )  # fmt: skip


class ResidualUnit(nn.Module):
    def __init__(self, before, after, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, before), nn.Conv2d(before, after, 3, padding=1)
        self.time = nn.Linear(time, after)
        self.norm2, self.conv2 = nn.GroupNorm(32, after), nn.Conv2d(after, after, 3, padding=1)
        self.side = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x, t):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.conv2(F.silu(self.norm2(y))) + self.side(x)


class PictureAttention(nn.Module):
    def __init__(self, d, heads=4):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(32, d)
        self.qkv, self.o = nn.Conv2d(d, 3 * d, 1), nn.Conv2d(d, d, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        qkv = self.qkv(self.norm(x)).view(b, 3, self.heads, c // self.heads, h * w)
        q, k, v = qkv.transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.o(y.transpose(-1, -2).reshape(b, c, h, w))


class UNet(nn.Module):
    """The noise predictor of a diffusion model, with a time embedding."""

    def __init__(self, base, factors):
        super().__init__()
        time, widths = 4 * base, [base * f for f in factors]
        self.time = nn.Sequential(nn.Linear(base, time), nn.SiLU(), nn.Linear(time, time))
        self.base, self.first = base, nn.Conv2d(3, base, 3, padding=1)
        self.down, self.up, self.shrink, self.grow = (nn.ModuleList() for _ in range(4))
        width = base
        for w in widths:
            self.down.append(ResidualUnit(width, w, time))
            self.shrink.append(nn.Conv2d(w, w, 3, 2, 1))
            width = w
        self.middle1, self.middle2 = (ResidualUnit(width, width, time) for _ in range(2))
        self.attention = PictureAttention(width)
        for w in reversed(widths):
            self.grow.append(nn.Conv2d(width, w, 3, padding=1))
            self.up.append(ResidualUnit(2 * w, w, time))
            width = w
        self.norm, self.last = nn.GroupNorm(32, base), nn.Conv2d(base, 3, 3, padding=1)

    def forward(self, x, t):
        steps = torch.exp(-9.2 * torch.arange(self.base // 2, device=x.device) / self.base * 2)
        angles = t[:, None].float() * steps
        t = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        x, kept = self.first(x), []
        for unit, shrink in zip(self.down, self.shrink):
            x = unit(x, t)
            kept.append(x)
            x = shrink(x)
        x = self.middle2(self.attention(self.middle1(x, t)), t)
        for unit, grow in zip(self.up, self.grow):
            x = grow(F.interpolate(x, scale_factor=2.0, mode="nearest"))
            x = unit(torch.cat([x, kept.pop()], 1), t)
        return self.last(F.silu(self.norm(x)))


def unet_train(device, small):
    batch, side, base = (2, 32, 32) if small else (32, 64, 128)
    model = UNet(base, (1, 2) if small else (1, 2, 3, 4)).to(device)
    x = torch.randn(batch, 3, side, side, device=device)
    noise = torch.randn(batch, 3, side, side, device=device)
    t = torch.randint(0, 1000, (batch,), device=device)
    return Workload(
        model, lambda m: F.mse_loss(m(x, t), noise), dtype=None if small else torch.bfloat16,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4), items=batch, unit="images",
    )  # fmt: skip


def gan_train(device, small):
    batch, d = (8, 16) if small else (128, 64)
    generator = nn.Sequential(
        nn.ConvTranspose2d(100, 8 * d, 4, bias=False), nn.BatchNorm2d(8 * d), nn.ReLU(True),
        nn.ConvTranspose2d(8 * d, 4 * d, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * d),
        nn.ReLU(True),
        nn.ConvTranspose2d(4 * d, 2 * d, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * d),
        nn.ReLU(True),
        nn.ConvTranspose2d(2 * d, d, 4, 2, 1, bias=False), nn.BatchNorm2d(d), nn.ReLU(True),
        nn.ConvTranspose2d(d, 3, 4, 2, 1, bias=False), nn.Tanh(),
    ).to(device)  # fmt: skip
    judge = nn.Sequential(
        nn.Conv2d(3, d, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(d, 2 * d, 4, 2, 1), nn.BatchNorm2d(2 * d), nn.LeakyReLU(0.2),
        nn.Conv2d(2 * d, 4 * d, 4, 2, 1), nn.BatchNorm2d(4 * d), nn.LeakyReLU(0.2),
        nn.Conv2d(4 * d, 8 * d, 4, 2, 1), nn.BatchNorm2d(8 * d), nn.LeakyReLU(0.2),
        nn.Conv2d(8 * d, 1, 4), nn.Flatten(0),
    ).to(device)  # fmt: skip
    for_generator = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    for_judge = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real = torch.randn(batch, 3, 64, 64, device=device)
    ones, zeros = torch.ones(batch, device=device), torch.zeros(batch, device=device)

    def step(generator):
        made = generator(torch.randn(batch, 100, 1, 1, device=device))
        for_judge.zero_grad()
        loss = F.binary_cross_entropy_with_logits(judge(real), ones)
        loss = loss + F.binary_cross_entropy_with_logits(judge(made.detach()), zeros)
        loss.backward()
        for_judge.step()
        return F.binary_cross_entropy_with_logits(judge(made), ones)

    return Workload(
        generator, step, optimizer=for_generator, modules=(judge,), items=batch, unit="images"
    )


ROWS = {
    "resnet50_float32": resnet50_float32,
    "resnet50_bf16": resnet50_bf16,
    "resnet50_channels_last": resnet50_channels_last,
    "resnet50_latency": resnet50_latency,
    "convnext_train": convnext_train,
    "unet_train": unet_train,
    "gan_train": gan_train,
}
