"""Twenty steps of each optimizer in float64, for the tests and their recorder.

Gradients are fixed numbers, some of them 0, that change their sign. LBFGS is given a function.
(NAdam's foreach=True: PyTorch 1.13 had a mistake in the other way to step.)
"""

CASES = """
SGD(lr=0.1)
SGD(lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.05)
SGD(lr=0.1, momentum=0.9, nesterov=True, maximize=True)
Adam()
Adam(lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)
Adam(lr=0.05, amsgrad=True, maximize=True)
Adam(lr=0.05, betas=(0.3, 0.6))
AdamW(lr=0.05)
AdamW(lr=0.05, weight_decay=0.3, amsgrad=True, maximize=True)
RMSprop()
RMSprop(lr=0.05, alpha=0.8, momentum=0.7, weight_decay=0.1)
RMSprop(lr=0.05, centered=True, eps=1e-3)
RMSprop(lr=0.05, centered=True, momentum=0.5, maximize=True)
Adagrad(lr=0.1)
Adagrad(lr=0.1, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.2, maximize=True)
Adadelta()
Adadelta(lr=0.5, rho=0.7, eps=1e-3, weight_decay=0.1, maximize=True)
Adamax()
Adamax(lr=0.05, betas=(0.7, 0.9), weight_decay=0.1, maximize=True)
NAdam(foreach=True)
NAdam(lr=0.05, betas=(0.7, 0.9), weight_decay=0.1, momentum_decay=0.02, foreach=True)
RAdam()
RAdam(lr=0.05, betas=(0.7, 0.9), weight_decay=0.1)
Rprop()
Rprop(lr=0.05, etas=(0.4, 1.3), step_sizes=(0.01, 0.2), maximize=True)
ASGD()
ASGD(lr=0.05, lambd=0.01, alpha=0.6, t0=5, weight_decay=0.1, maximize=True)
LBFGS()
LBFGS(lr=0.3, max_iter=4, history_size=3)
LBFGS(max_iter=7, line_search_fn='strong_wolfe')
LBFGS(lr=0.5, tolerance_grad=1e-2, tolerance_change=1e-3)
""".strip().splitlines()
SHAPES = [(3, 2), (4,), ()]


def numbers(count, first):
    return [((first + i * 17) % 23) / 11 - 1 if (first + i) % 7 else 0.0 for i in range(count)]


def tensor(torch, shape, first):
    count = 1
    for s in shape:
        count *= s
    return torch.tensor(numbers(count, first), dtype=torch.float64).reshape(shape)


def parameters(torch, device="cpu"):
    return [
        tensor(torch, shape, 40 + i).to(device).requires_grad_() for i, shape in enumerate(SHAPES)
    ]


def step(torch, optimizer, params, t):
    """One step: with fixed gradients, or down a function that is no parabola."""
    if type(optimizer).__name__ == "LBFGS":

        def closure():
            optimizer.zero_grad()
            loss = 0
            for i, p in enumerate(params):
                far = p - tensor(torch, p.shape, 3 + i).to(p.device)
                square = far * far
                loss = loss + (square * square * 0.3 + square * (1 + i)).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return
    for i, p in enumerate(params):
        p.grad = tensor(torch, p.shape, t * 31 + i * 5).to(p.device)
    optimizer.step()


def flat(value):
    if isinstance(value, list):
        return [x for v in value for x in flat(v)]
    return [float(value)]


def state_of(optimizer, params):
    """Tensors of the state of each parameter, by name."""
    found = []
    for p in params:
        state = optimizer.state[p]
        found.append(
            {k: flat(v.tolist()) for k, v in state.items() if hasattr(v, "tolist") and k != "d"}
        )
    return found


def run(torch, case, device="cpu"):
    """Parameters after 1, 5 and 20 steps, and the state at the end."""
    params = parameters(torch, device)
    name, _, options = case.partition("(")
    names = {"make": getattr(torch.optim, name), "params": params}
    optimizer = eval(f"make(params, {options}", names)
    seen = []
    for t in range(20):
        step(torch, optimizer, params, t)
        if t + 1 in (1, 5, 20):
            seen.append([flat(p.detach().tolist()) for p in params])
    state = {} if name == "LBFGS" else state_of(optimizer, params)
    return [seen, state]


if __name__ == "__main__":
    # Records: python3 tests/python/optimizers.py tests/python/data/optimizers.json, with PyTorch.
    import json
    import sys

    import torch

    with open(sys.argv[1], "w", encoding="ascii") as file:
        lines = (f"{json.dumps(c)}: {json.dumps(run(torch, c))}" for c in CASES)
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
