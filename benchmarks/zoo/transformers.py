"""Llama, GPT-2, ViT, BERT, Whisper and a mixture of experts, at public sizes."""

import torch
from torch import nn

from . import Workload

F = nn.functional


def heads_first(x, heads):
    b, t, d = x.shape
    return x.view(b, t, heads, d // heads).transpose(1, 2)


def heads_last(x):
    b, h, t, d = x.shape
    return x.transpose(1, 2).reshape(b, t, h * d)


def rotary_table(length, size, device):
    frequencies = 10000.0 ** (-torch.arange(0, size, 2, device=device).float() / size)
    angles = torch.arange(length, device=device).float()[:, None] * frequencies
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class LlamaBlock(nn.Module):
    def __init__(self, d, heads, kv_heads, inner):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        kv = d // heads * kv_heads
        self.norm1, self.norm2 = nn.RMSNorm(d), nn.RMSNorm(d)
        self.q, self.o = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.k, self.v = nn.Linear(d, kv, bias=False), nn.Linear(d, kv, bias=False)
        self.gate, self.up = nn.Linear(d, inner, bias=False), nn.Linear(d, inner, bias=False)
        self.down = nn.Linear(inner, d, bias=False)

    def forward(self, x, cos, sin, cache=None):
        y = self.norm1(x)
        q = rotate(heads_first(self.q(y), self.heads), cos, sin).to(y.dtype)
        k = rotate(heads_first(self.k(y), self.kv_heads), cos, sin).to(y.dtype)
        v = heads_first(self.v(y), self.kv_heads)
        q, k, v = q.to(v.dtype), k.to(v.dtype), v
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        groups = self.heads // self.kv_heads
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.o(heads_last(y))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, vocabulary, d, layers, heads, kv_heads, inner):
        super().__init__()
        self.size, self.kv_heads = d // heads, kv_heads
        self.embed = nn.Embedding(vocabulary, d)
        self.blocks = nn.ModuleList(LlamaBlock(d, heads, kv_heads, inner) for _ in range(layers))
        self.norm = nn.RMSNorm(d)
        self.head = nn.Linear(d, vocabulary, bias=False)

    def forward(self, ids, targets=None, caches=None, start=0):
        x = self.embed(ids)
        cos, sin = rotary_table(start + ids.shape[1], self.size, ids.device)
        cos, sin = cos[start:].to(x.dtype), sin[start:].to(x.dtype)
        for i, block in enumerate(self.blocks):
            x = block(x, cos, sin, caches[i] if caches is not None else None)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def llama_model(small):
    if small:
        return Llama(512, 128, 4, 4, 2, 344), 512
    return Llama(32000, 1024, 24, 16, 4, 2816), 32000


def llama_train(device, small):
    model, vocabulary = llama_model(small)
    batch, length = (4, 128) if small else (8, 2048)
    ids = torch.randint(0, vocabulary, (batch, length), device=device)
    model = model.to(device)
    return Workload(
        model, lambda m: m(ids, ids), dtype=None if small else torch.bfloat16,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4),
        items=batch * length, unit="tokens",
    )  # fmt: skip


def llama_prefill(device, small):
    model, vocabulary = llama_model(small)
    batch, length = (1, 256) if small else (4, 2048)
    model = model.to(device).to(torch.bfloat16).eval()
    ids = torch.randint(0, vocabulary, (batch, length), device=device)
    return Workload(model, lambda m: m(ids), training=False, items=batch * length, unit="tokens")


def llama_decode(device, small):
    model, vocabulary = llama_model(small)
    past = 128 if small else 2048
    model = model.to(device).to(torch.bfloat16).eval()
    ids = torch.randint(0, vocabulary, (1, 1), device=device)
    shape = (1, model.kv_heads, past, model.size)
    caches = [
        tuple(torch.randn(shape, device=device).to(torch.bfloat16) for _ in range(2))
        for _ in model.blocks
    ]
    return Workload(
        model, lambda m: m(ids, caches=caches, start=past), training=False, items=1, unit="tokens"
    )


class Encoder(nn.Module):
    """A pre-norm or post-norm block with self-attention and optional cross-attention."""

    def __init__(self, d, heads, dropout=0.0, post=False, cross=False, causal=False):
        super().__init__()
        self.heads, self.post, self.causal, self.p = heads, post, causal, dropout
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.drop = nn.Dropout(dropout)
        if cross:
            self.norm3 = nn.LayerNorm(d)
            self.q, self.kv, self.o2 = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)

    def attend(self, x, mask):
        q, k, v = (heads_first(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        p = self.p if self.training else 0.0
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=p, is_causal=self.causal
        )
        return self.drop(self.o(heads_last(y)))

    def cross(self, x, memory):
        q = heads_first(self.q(x), self.heads)
        k, v = (heads_first(t, self.heads) for t in self.kv(memory).chunk(2, -1))
        return self.o2(heads_last(F.scaled_dot_product_attention(q, k, v)))

    def feed(self, x):
        return self.drop(self.down(F.gelu(self.up(x))))

    def forward(self, x, mask=None, memory=None):
        if self.post:
            x = self.norm1(x + self.attend(x, mask))
            return self.norm2(x + self.feed(x))
        x = x + self.attend(self.norm1(x), mask)
        if memory is not None:
            x = x + self.cross(self.norm3(x), memory)
        return x + self.feed(self.norm2(x))


class GPT2(nn.Module):
    def __init__(self, vocabulary, length, d, heads, layers):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
        self.blocks = nn.ModuleList(Encoder(d, heads, causal=True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def gpt2_train(device, small):
    sizes = (256, 64, 128, 4, 4) if small else (50304, 1024, 768, 12, 12)
    batch = 8 if small else 16
    model = GPT2(*sizes).to(device)
    ids = torch.randint(0, sizes[0], (batch, sizes[1]), device=device)
    return Workload(
        model, lambda m: m(ids, ids), dtype=None if small else torch.bfloat16,
        optimizer=torch.optim.AdamW(model.parameters(), lr=3e-4),
        items=batch * sizes[1], unit="tokens",
    )  # fmt: skip


class ViT(nn.Module):
    def __init__(self, side, patch, d, heads, layers, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, d, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, d))
        self.positions = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, d) * 0.02)
        self.blocks = nn.ModuleList(Encoder(d, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, classes)

    def forward(self, x, y=None):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        z = self.head(self.norm(x)[:, 0])
        return z if y is None else F.cross_entropy(z, y)


def vit(device, small, batch):
    side = 64 if small else 224
    model = ViT(side, 16, *((192, 3, 4) if small else (768, 12, 12))).to(device)
    x = torch.randn(batch, 3, side, side, device=device)
    return model, x, torch.randint(0, 1000, (batch,), device=device)


def vit_train(device, small):
    batch = 8 if small else 128
    model, x, y = vit(device, small, batch)
    return Workload(
        model, lambda m: m(x, y), dtype=torch.bfloat16,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4), items=batch, unit="images",
    )  # fmt: skip


def vit_infer(device, small):
    batch = 8 if small else 64
    model, x, _ = vit(device, small, batch)
    half = torch.bfloat16 if small else torch.float16
    model, x = model.to(half).eval(), x.to(half)
    return Workload(model, lambda m: m(x), training=False, items=batch, unit="images")


class BERT(nn.Module):
    def __init__(self, vocabulary, length, d, heads, layers):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
        self.norm, self.drop = nn.LayerNorm(d), nn.Dropout(0.1)
        self.blocks = nn.ModuleList(Encoder(d, heads, 0.1, post=True) for _ in range(layers))
        self.head = nn.Linear(d, vocabulary)

    def forward(self, ids, mask, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        x = self.drop(self.norm(x))
        for block in self.blocks:
            x = block(x, mask)
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten(), ignore_index=-100)


def bert_train(device, small):
    sizes = (1024, 64, 128, 4, 4) if small else (30522, 512, 768, 12, 12)
    batch, length = (8, 64) if small else (32, 512)
    model = BERT(*sizes).to(device)
    ids = torch.randint(0, sizes[0], (batch, length), device=device)
    lengths = torch.randint(length // 2, length + 1, (batch, 1), device=device)
    inside = torch.arange(length, device=device) < lengths
    targets = torch.where(torch.rand(batch, length, device=device) < 0.15, ids, -100)
    mask = inside[:, None, None, :]
    return Workload(
        model, lambda m: m(ids, mask, targets), dtype=None if small else torch.bfloat16,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4),
        items=batch * length, unit="tokens",
    )  # fmt: skip


class Whisper(nn.Module):
    def __init__(self, mels, frames, vocabulary, length, d, heads, layers):
        super().__init__()
        self.conv1 = nn.Conv1d(mels, d, 3, padding=1)
        self.conv2 = nn.Conv1d(d, d, 3, stride=2, padding=1)
        self.audio = nn.Parameter(torch.randn(frames // 2, d) * 0.02)
        self.encoder = nn.ModuleList(Encoder(d, heads) for _ in range(layers))
        self.norm1 = nn.LayerNorm(d)
        self.tokens = nn.Embedding(vocabulary, d)
        self.text = nn.Parameter(torch.randn(length, d) * 0.02)
        self.decoder = nn.ModuleList(
            Encoder(d, heads, cross=True, causal=True) for _ in range(layers)
        )
        self.norm2 = nn.LayerNorm(d)

    def forward(self, sound, ids, targets):
        x = F.gelu(self.conv2(F.gelu(self.conv1(sound)))).transpose(1, 2) + self.audio
        for block in self.encoder:
            x = block(x)
        memory, x = self.norm1(x), self.tokens(ids) + self.text
        for block in self.decoder:
            x = block(x, memory=memory)
        logits = F.linear(self.norm2(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def whisper_train(device, small):
    sizes = (80, 200, 512, 32, 128, 4, 2) if small else (80, 3000, 51865, 224, 512, 8, 6)
    batch = 2 if small else 16
    model = Whisper(*sizes).to(device)
    sound = torch.randn(batch, sizes[0], sizes[1], device=device)
    ids = torch.randint(0, sizes[2], (batch, sizes[3]), device=device)
    return Workload(
        model, lambda m: m(sound, ids, ids), dtype=None if small else torch.bfloat16,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4), items=batch, unit="clips",
    )  # fmt: skip


class Experts(nn.Module):
    """Top-2 routing: each expert runs on the tokens routed to it."""

    def __init__(self, d, inner, count):
        super().__init__()
        self.router = nn.Linear(d, count, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(d, inner), nn.GELU(), nn.Linear(inner, d)) for _ in range(count)
        )

    def forward(self, x):
        shape, x = x.shape, x.flatten(0, 1)
        weights, chosen = torch.softmax(self.router(x).float(), -1).topk(2, -1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows, slot = torch.where(chosen == i)
            part = expert(x[rows]).to(out.dtype) * weights[rows, slot, None]
            out = out.index_add(0, rows, part)
        return out.view(shape)


class MoE(nn.Module):
    def __init__(self, vocabulary, d, heads, layers, experts):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, d)
        self.blocks = nn.ModuleList(Encoder(d, heads, causal=True) for _ in range(layers))
        for block in self.blocks:
            block.feed = Experts(d, 4 * d, experts)
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)

    def forward(self, ids, targets):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def moe_train(device, small):
    sizes = (512, 128, 4, 2, 4) if small else (32000, 768, 12, 8, 8)
    batch, length = (4, 64) if small else (8, 1024)
    model = MoE(*sizes).to(device)
    ids = torch.randint(0, sizes[0], (batch, length), device=device)
    return Workload(
        model, lambda m: m(ids, ids), dtype=None if small else torch.bfloat16,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-4),
        items=batch * length, unit="tokens",
    )  # fmt: skip


ROWS = {
    "llama_train": llama_train,
    "llama_prefill": llama_prefill,
    "llama_decode": llama_decode,
    "gpt2_train": gpt2_train,
    "vit_train": vit_train,
    "vit_infer": vit_infer,
    "bert_train": bert_train,
    "whisper_train": whisper_train,
    "moe_train": moe_train,
}
