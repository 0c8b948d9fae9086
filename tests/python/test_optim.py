"""SGD against the same steps in Python's floats."""

import pytest

import tessera as torch
from tessera import nn, optim

CASES = [
    {},
    {"momentum": 0.9},
    {"momentum": 0.9, "dampening": 0.1},
    {"momentum": 0.9, "nesterov": True},
    {"weight_decay": 0.1},
    {"momentum": 0.5, "weight_decay": 0.1, "maximize": True},
]


def reference(
    p, grads, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False
):
    buffer = None
    for g in grads:
        g = (-g if maximize else g) + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p -= lr * g
    return p


@pytest.mark.parametrize("options", CASES, ids=str)
def test_steps(options, device):
    params = [nn.Parameter(torch.full((3,), float(i + 1), device=device)) for i in range(2)]
    optimizer = optim.SGD(params, lr=0.1, **options)
    grads = [0.5, -1.0, 0.25]
    for g in grads:
        for p in params:
            p.grad = torch.full((3,), g, device=device)
        optimizer.step()
    for i, p in enumerate(params):
        wanted = reference(float(i + 1), grads, 0.1, **options)
        assert p.tolist() == pytest.approx([wanted] * 3, rel=1e-5)
        assert p.requires_grad and p.is_leaf


def test_groups_and_zero_grad(device):
    a, b = (nn.Parameter(torch.ones(1, device=device)) for _ in range(2))
    unused = nn.Parameter(torch.ones(1, device=device))
    optimizer = optim.SGD([{"params": [a, unused]}, {"params": b, "lr": 1.0}], lr=0.1)
    (a + b).sum().backward()
    assert optimizer.step(lambda: 5) == 5
    assert a.tolist() == pytest.approx([0.9]) and b.item() == 0 and unused.item() == 1
    optimizer.zero_grad()
    assert a.grad is None
    assert "lr: 0.1" in repr(optimizer)


def test_refusals():
    with pytest.raises(ValueError, match="empty"):
        optim.SGD([], lr=0.1)
    with pytest.raises(TypeError):
        optim.SGD(torch.ones(1), lr=0.1)
    with pytest.raises(ValueError, match="learning rate"):
        optim.SGD([torch.ones(1)], lr=-1)
    with pytest.raises(ValueError, match="non-leaf"):
        optim.SGD([torch.ones(1, requires_grad=True) * 2], lr=0.1)


def test_a_small_network_learns(device):
    torch.manual_seed(0)
    x = torch.randn(64, 4).to(device)
    y = x @ torch.randn(4, 1).to(device)
    w = nn.Parameter(torch.zeros(4, 1, device=device))
    optimizer = optim.SGD([w], lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(x @ w, y)
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3
