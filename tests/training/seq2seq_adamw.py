"""Reads a sequence and writes it backwards: packed sequences, two-way GRU, attention, GRU cells."""

import torch
import torch.nn.functional as F
from steps import DTYPE, train
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(20, 16, padding_idx=0)
        self.read = nn.GRU(16, 24, bidirectional=True, batch_first=True)
        self.start = nn.Linear(48, 24)
        self.match, self.weigh = nn.Linear(72, 24), nn.Linear(24, 1, bias=False)
        self.write = nn.GRUCell(64, 24)
        self.choose = nn.Linear(88, 20)

    def forward(self, words, lengths, target):
        packed = pack_padded_sequence(
            self.letter(words), lengths, batch_first=True, enforce_sorted=False
        )
        seen, last = self.read(packed)
        seen, _ = pad_packed_sequence(seen, batch_first=True)
        state = torch.tanh(self.start(torch.cat([last[-2], last[-1]], dim=1)))
        empty = words[:, : seen.shape[1]] == 0
        before, scores = torch.ones_like(words[:, 0]), []
        for t in range(seen.shape[1]):
            around = state.unsqueeze(1).expand(-1, seen.shape[1], -1)
            fit = self.weigh(torch.tanh(self.match(torch.cat([around, seen], dim=2)))).squeeze(2)
            weights = F.softmax(fit.masked_fill(empty, -1e10), dim=1)
            context = torch.bmm(weights.unsqueeze(1), seen).squeeze(1)
            letter = self.letter(before)
            state = self.write(torch.cat([letter, context], dim=1), state)
            scores.append(self.choose(torch.cat([state, context, letter], dim=1)))
            before = target[:, t] if t % 2 else scores[-1].argmax(dim=1)
        return torch.stack(scores, dim=1)


def loss_of(net, words, lengths, target):
    scores = net(words, lengths, target)
    return F.cross_entropy(
        scores.flatten(0, 1), target[:, : scores.shape[1]].flatten(), ignore_index=0
    )


torch.manual_seed(18)
words = torch.randint(1, 20, (48, 7))
lengths = torch.randint(3, 8, (48,))
target = torch.zeros_like(words)
for row, n in enumerate(lengths.tolist()):
    words[row, n:] = 0
    target[row, :n] = words[row, :n].flip(0)
model = Translator().to(DTYPE)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
batches = [(words[i : i + 16], lengths[i : i + 16], target[i : i + 16]) for i in (0, 16, 32)]
train(model, optimizer, batches, loss_of, clip=1.0)
