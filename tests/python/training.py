"""Small training runs, for the test and its recorder: the same seed gives the same log."""


def perceptron(torch, data):
    nn = torch.nn
    torch.manual_seed(0)
    x = torch.randn(96, 6)
    y = (x[:, :1] * x[:, 1:2] + x[:, 2:3]) * 0.5
    train, test = data.random_split(data.TensorDataset(x, y), [64, 32])
    loader = data.DataLoader(train, batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    log = []
    for _ in range(5):
        model.train()
        for xs, ys in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(xs), ys)
            loss.backward()
            optimizer.step()
            log.append(loss.item())
        scheduler.step()
        model.eval()
        with torch.no_grad():
            for xs, ys in data.DataLoader(test, batch_size=32):
                log.append(nn.functional.mse_loss(model(xs), ys).item())
    return log


def images(torch, data):
    nn = torch.nn
    torch.manual_seed(1)
    x = torch.rand(48, 1, 8, 8)
    y = x[:, 0, :4].sum((1, 2)).unsqueeze(1) - 16

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3)
            )
            self.head = nn.Linear(8 * 2 * 2, 1)

        def forward(self, x):
            return self.head(nn.functional.relu(self.features(x)).flatten(1))

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    log = []
    for _ in range(4):
        for xs, ys in data.DataLoader(data.TensorDataset(x, y), 12, shuffle=True, drop_last=True):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(xs), ys)
            loss.backward()
            optimizer.step()
            log.append(loss.item())
    return log


def sequences(torch, data):
    nn = torch.nn
    torch.manual_seed(2)
    words = torch.randint(0, 12, (32, 6))
    target = (words == 3).float().sum(1, keepdim=True)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(12, 8)
            self.rnn = nn.LSTM(8, 16, batch_first=True)
            self.head = nn.Linear(16, 1)

        def forward(self, words):
            out, _ = self.rnn(self.table(words))
            return self.head(out[:, -1])

    model = Net()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    log = []
    for _ in range(4):
        for xs, ys in data.DataLoader(data.TensorDataset(words, target), 8, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(xs), ys)
            loss.backward()
            optimizer.step()
            log.append(loss.item())
    return log


RUNS = {run.__name__: run for run in (perceptron, images, sequences)}

if __name__ == "__main__":
    # Records: python3 tests/python/training.py tests/python/data/training.json, with PyTorch.
    import json
    import sys

    import torch
    import torch.utils.data

    logs = {name: run(torch, torch.utils.data) for name, run in RUNS.items()}
    with open(sys.argv[1], "w", encoding="ascii") as file:
        json.dump(logs, file, indent=1)
        file.write("\n")
