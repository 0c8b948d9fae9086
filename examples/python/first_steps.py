"""First steps: tensors on devices, gradients, a small training loop, errors that say what to do.

Run it with `./dev run examples/python/first_steps.py`, on a machine with or without a GPU; or with
`tessera run --virtual-gpu 2x2GiB examples/python/first_steps.py`, on two GPUs that are not there.
"""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
print(f"device: {device}" + (f" ({torch.cuda.get_device_name()})" if device == "cuda" else ""))

# Tensors, and the way between devices.
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
y = x.to(device)
print(y @ y + 1)
back = (y * 2).cpu()
assert back.tolist() == [[2.0, 4.0], [6.0, 8.0]]
print("rows of the transpose:", [row.tolist() for row in x.t()])

# A small network that learns y = a gelu of a linear map, from raw operators.
torch.manual_seed(0)
inputs = torch.randn(256, 8).to(device)
truth = torch.randn(8, 1).to(device)
targets = F.gelu(inputs @ truth)

w1 = nn.Parameter(torch.randn(8, 32).to(device) * 0.3)
b1 = nn.Parameter(torch.zeros(32, device=device))
w2 = nn.Parameter(torch.randn(32, 1).to(device) * 0.3)
b2 = nn.Parameter(torch.zeros(1, device=device))
optimizer = torch.optim.SGD([w1, b1, w2, b2], lr=0.05, momentum=0.9)

first = last = None
for step in range(200):
    optimizer.zero_grad()
    hidden = F.gelu(inputs @ w1 + b1)
    predicted = hidden @ w2 + b2
    difference = predicted - targets
    loss = (difference * difference).sum() / len(inputs)
    loss.backward()
    optimizer.step()
    last = loss.item()
    first = last if first is None else first
    if step % 50 == 0:
        print(f"step {step:3d}: loss {last:.4f}")
print(f"loss {first:.4f} -> {last:.4f}")
assert last < first / 10

# A mistake, and what it says.
if device == "cuda":
    try:
        torch.ones(2) + torch.ones(2, device=device)
    except RuntimeError as error:
        print("two devices in one operator:", error)
    else:
        raise AssertionError("adding tensors of two devices has to fail")
try:
    torch.ones(2, 3) @ torch.ones(2, 3)
except RuntimeError as error:
    print("shapes that do not fit:", error)
