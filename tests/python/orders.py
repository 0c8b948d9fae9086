"""Orders in which data comes, for the tests and their recorder: the same seeds, the same shuffles.

A case is an expression over `d` (torch.utils.data), `torch`, `g` (a fresh generator with seed 9),
and the tensors X and Y. It is evaluated after torch.manual_seed(5); a number drawn afterwards tells
whether as much was drawn as PyTorch draws.
"""

CASES = """
list(d.DataLoader(d.TensorDataset(X, Y), batch_size=4, shuffle=True))
list(d.DataLoader(d.TensorDataset(X, Y), 4, shuffle=True, drop_last=True, generator=g()))
[list(d.DataLoader(d.TensorDataset(Y), batch_size=9, shuffle=True)) for _ in range(2)]
list(d.DataLoader(d.TensorDataset(X, Y), batch_size=9))
list(d.DataLoader(Y.tolist(), batch_size=9, shuffle=True))
list(d.DataLoader(Y.tolist(), batch_size=None, shuffle=True))
list(d.RandomSampler(Y))
list(d.RandomSampler(Y, True, 70))
list(d.RandomSampler(Y, False, 60, g()))
list(d.DataLoader(d.TensorDataset(Y), batch_size=30, sampler=d.RandomSampler(Y, True, 70)))
list(d.DataLoader(d.TensorDataset(Y), batch_size=30, sampler=d.RandomSampler(Y, False, 12)))
list(d.WeightedRandomSampler([0.1] * 20 + [1] * 5, 30))
list(d.WeightedRandomSampler([0.1] * 20 + [1] * 5, 10, False, g()))
list(d.SubsetRandomSampler([3, 5, 7, 9, 11]))
list(d.BatchSampler(d.RandomSampler(Y), 4, False))
list(d.BatchSampler(d.SequentialSampler(Y), 4, True))
[list(s) for s in d.random_split(range(25), [10, 15])]
[list(s) for s in d.random_split(range(25), [0.3, 0.3, 0.4], g())]
[list(d.DataLoader(s, 8, shuffle=True)) for s in d.random_split(d.TensorDataset(Y), [9, 16])]
[list(d.distributed.DistributedSampler(range(11), 3, r, seed=2)) for r in range(3)]
[list(d.distributed.DistributedSampler(range(11), 3, r, False, drop_last=True)) for r in range(3)]
list(d.DataLoader(Drawing(), batch_size=3, shuffle=True, num_workers=2))
""".strip().splitlines()


def listed(value):
    """Tensors as lists, within lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return [listed(v) for v in value] if isinstance(value, (list, tuple)) else value


def run(torch, case):
    import random
    from importlib import import_module

    class Drawing:
        def __len__(self):
            return 10

        def __getitem__(self, i):
            return i, random.random(), torch.rand(1).item()

    data = import_module(torch.__name__ + ".utils.data")
    import_module(torch.__name__ + ".utils.data.distributed")
    names = {
        "d": data,
        "torch": torch,
        "g": lambda: torch.Generator().manual_seed(9),
        "X": torch.tensor([float(i) for i in range(50)]).reshape(25, 2),
        "Y": torch.tensor(list(range(25))),
        "Drawing": Drawing,
    }
    torch.manual_seed(5)
    return [listed(eval(case, names)), torch.rand(1).item()]


if __name__ == "__main__":
    # Records: python3 tests/python/orders.py tests/python/data/orders.json, with PyTorch.
    import json
    import sys

    import torch

    with open(sys.argv[1], "w", encoding="ascii") as file:
        lines = (f"{json.dumps(c)}: {json.dumps(run(torch, c))}" for c in CASES)
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
