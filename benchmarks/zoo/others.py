"""An LSTM, a recommendation model, a graph network and a reinforcement-learning policy."""

import torch
from torch import nn

from . import Workload

F = nn.functional


class LanguageLSTM(nn.Module):
    def __init__(self, vocabulary, d, layers):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, d), nn.Linear(d, vocabulary)
        self.lstm = nn.LSTM(d, d, layers, batch_first=True)

    def forward(self, ids):
        logits = self.head(self.lstm(self.embed(ids))[0])
        return F.cross_entropy(logits.flatten(0, 1), ids.flatten())


def lstm_train(device, small):
    vocabulary, d, batch, length = (1000, 128, 8, 64) if small else (10000, 1024, 64, 256)
    model = LanguageLSTM(vocabulary, d, 2).to(device)
    ids = torch.randint(0, vocabulary, (batch, length), device=device)
    return Workload(
        model, lambda m: m(ids), optimizer=torch.optim.Adam(model.parameters()),
        items=batch * length, unit="tokens",
    )  # fmt: skip


class DLRM(nn.Module):
    """Dense and categorical features, combined by pairwise products."""

    def __init__(self, rows, tables, d):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, d, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(
            nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, d)
        )
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(
            nn.Linear(pairs + d, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1)
        )
        i, j = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("i", i)
        self.register_buffer("j", j)

    def forward(self, dense, ids):
        x = self.bottom(dense)
        parts = [x] + [table(column) for table, column in zip(self.tables, ids)]
        stacked = torch.stack(parts, 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))[:, self.i, self.j]
        return self.top(torch.cat([x, products], 1)).squeeze(1)


def dlrm_train(device, small):
    rows, tables, d, batch = (1000, 4, 16, 64) if small else (100000, 26, 64, 8192)
    model = DLRM(rows, tables, d).to(device)
    dense = torch.randn(batch, 13, device=device)
    ids = [torch.randint(0, rows, (batch, 4), device=device) for _ in range(tables)]
    clicked = torch.rand(batch, device=device).round()
    return Workload(
        model, lambda m: F.binary_cross_entropy_with_logits(m(dense, ids), clicked),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1), items=batch, unit="rows",
    )  # fmt: skip


class GraphConvolution(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.linear = nn.Linear(before, after)

    def forward(self, x, source, target, weight):
        messages = self.linear(x)[source] * weight[:, None]
        return torch.zeros_like(messages[: x.shape[0]]).index_add(0, target, messages)


class GCN(nn.Module):
    def __init__(self, before, d, classes):
        super().__init__()
        self.layers = nn.ModuleList(
            [GraphConvolution(before, d), GraphConvolution(d, d), GraphConvolution(d, classes)]
        )

    def forward(self, x, *edges):
        for layer in self.layers[:-1]:
            x = F.dropout(F.relu(layer(x, *edges)), 0.5, self.training)
        return self.layers[-1](x, *edges)


def gcn_train(device, small):
    nodes, edges, before, d = (2000, 10000, 64, 32) if small else (170000, 1200000, 128, 256)
    model = GCN(before, d, 40).to(device)
    x = torch.randn(nodes, before, device=device)
    source, target = (torch.randint(0, nodes, (edges,), device=device) for _ in range(2))
    weight = torch.rand(edges, device=device)
    y = torch.randint(0, 40, (nodes,), device=device)
    return Workload(
        model, lambda m: F.cross_entropy(m(x, source, target, weight), y),
        optimizer=torch.optim.Adam(model.parameters(), lr=0.01), items=nodes, unit="nodes",
    )  # fmt: skip


class Policy(nn.Module):
    def __init__(self, observations, actions, d):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observations, d), nn.Tanh(), nn.Linear(d, d), nn.Tanh())
        self.actor, self.critic = nn.Linear(d, actions), nn.Linear(d, 1)

    def forward(self, x):
        x = self.body(x)
        return self.actor(x), self.critic(x).squeeze(-1)


def policy_train(device, small):
    """One clipped policy-gradient update (PPO) over a batch of experience."""
    batch, d = (256, 64) if small else (65536, 256)
    model = Policy(64, 8, d).to(device)
    x = torch.randn(batch, 64, device=device)
    actions = torch.randint(0, 8, (batch,), device=device)
    before = torch.randn(batch, device=device) - 2
    advantage, returns = torch.randn(batch, device=device), torch.randn(batch, device=device)

    def step(model):
        logits, value = model(x)
        logs = torch.log_softmax(logits, -1)
        chosen = logs.gather(1, actions[:, None]).squeeze(1)
        ratio = (chosen - before).exp()
        clipped = ratio.clamp(0.8, 1.2)
        entropy = -(logs.exp() * logs).sum(-1).mean()
        gain = torch.min(ratio * advantage, clipped * advantage).mean()
        return F.mse_loss(value, returns) * 0.5 - gain - 0.01 * entropy

    return Workload(
        model, step, optimizer=torch.optim.Adam(model.parameters(), lr=3e-4),
        items=batch, unit="steps",
    )  # fmt: skip


ROWS = {
    "lstm_train": lstm_train,
    "dlrm_train": dlrm_train,
    "gcn_train": gcn_train,
    "policy_train": policy_train,
}
