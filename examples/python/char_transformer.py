"""A small transformer learns to write, letter by letter, from this project's own documentation.

Run it with `./dev run examples/python/char_transformer.py [STEPS [DEVICE]]`, on the CPU unless
told. With more steps it spells better.
"""

import re
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from tessera.utils.progress import progress

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 400
CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 48, 64, 4, 2, 24

pages = sorted((Path(__file__).resolve().parents[2] / "docs").rglob("*.md"))
text = "".join(page.read_text(encoding="utf-8") for page in pages)
text = "".join(letter for letter in text if letter == "\n" or " " <= letter <= "~")
text = re.sub(" +", " ", text)
letters = sorted(set(text))
number = {letter: i for i, letter in enumerate(letters)}


class Block(nn.Module):
    """Attention to the letters before, then a network for each letter; both add to what came in."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, HEADS, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norm2(x))


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(len(letters), WIDTH)
        self.place = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(letters))

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.norm(self.blocks(self.letter(x) + self.place(places))))

    @torch.no_grad()
    def write(self, start, length):
        written = torch.tensor([[number[letter] for letter in start]], device=device)
        for _ in range(length):
            scores = self(written[:, -CONTEXT:])[:, -1] / 0.7
            written = torch.cat([written, torch.multinomial(scores.softmax(dim=-1), 1)], dim=1)
        return "".join(letters[i] for i in written[0].tolist())


device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
torch.manual_seed(0)
data = torch.tensor([number[letter] for letter in text])
model = Writer().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=STEPS)
weights = sum(parameter.numel() for parameter in model.parameters())
print(f"{len(text)} letters of {len(letters)} kinds, {weights} parameters")

losses = []
bar = progress(range(STEPS), "training")
for step in bar:
    starts = torch.randint(len(data) - CONTEXT - 1, (BATCH, 1))
    window = data[starts + torch.arange(CONTEXT + 1)].to(device)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
    bar.set_postfix(loss=losses[-1])
    if (step + 1) % 100 == 0:
        print(f"step {step + 1:4d}: loss {sum(losses[-100:]) / 100:.3f}")

print("It writes:", model.write("The operator ", 200), sep="\n")
if STEPS >= 200:
    assert sum(losses[-20:]) / 20 < 0.6 * losses[0]
