"""An LSTM learns to write, letter by letter, from this project's own documentation.

Run it with `./dev run examples/python/char_lstm.py [STEPS [DEVICE]]`, on the CPU unless
told. With more steps it spells better.
"""

import re
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from tessera.utils.progress import progress

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 300
LENGTH, BATCH, HIDDEN = 32, 16, 128

pages = sorted((Path(__file__).resolve().parents[2] / "docs").rglob("*.md"))
text = "".join(page.read_text(encoding="utf-8") for page in pages)
text = "".join(letter for letter in text if letter == "\n" or " " <= letter <= "~")
text = re.sub(" +", " ", text)
letters = sorted(set(text))
number = {letter: i for i, letter in enumerate(letters)}


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(len(letters), 32)
        self.lstm = nn.LSTM(32, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, len(letters))

    def forward(self, x, state=None):
        out, state = self.lstm(self.letter(x), state)
        return self.head(out), state

    @torch.no_grad()
    def write(self, start, length):
        written = [number[letter] for letter in start]
        scores, state = self(torch.tensor([written], device=device))
        for _ in range(length):
            choice = torch.multinomial((scores[:, -1] / 0.7).softmax(dim=-1), 1)
            written.append(choice.item())
            scores, state = self(choice, state)
        return "".join(letters[i] for i in written)


device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
torch.manual_seed(0)
data = torch.tensor([number[letter] for letter in text])
# The text in BATCH strips; each step reads on where the one before it ended, with its state.
strips = data[: len(data) // BATCH * BATCH].view(BATCH, -1)
model = Writer().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
weights = sum(parameter.numel() for parameter in model.parameters())
print(f"{len(text)} letters of {len(letters)} kinds, {weights} parameters")

losses, state, place = [], None, 0
bar = progress(range(STEPS), "training")
for step in bar:
    if place + LENGTH + 1 > strips.shape[1]:
        state, place = None, 0
    window = strips[:, place : place + LENGTH + 1].to(device)
    place += LENGTH
    scores, state = model(window[:, :-1], state)
    state = tuple(part.detach() for part in state)
    loss = F.cross_entropy(scores.flatten(0, 1), window[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
    bar.set_postfix(loss=losses[-1])
    if (step + 1) % 50 == 0:
        print(f"step {step + 1:4d}: loss {sum(losses[-50:]) / 50:.3f}")

print("It writes:", model.write("The operator ", 200), sep="\n")
if STEPS >= 200:
    assert sum(losses[-20:]) / 20 < 0.6 * losses[0]
