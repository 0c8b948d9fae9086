"""Learning rates over 20 steps, for the tests and their recorder.

A case is an expression over `s` (torch.optim.lr_scheduler), `w` (swa_utils) and `o`, an optimizer
with two groups of rates 0.1 and 0.5. SGD has momentum 0.9; a case that begins with "Adam:" has
Adam instead. A scheduler that wants a metric is given the numbers of METRICS.
"""

METRICS = [5, 4, 3, 3, 3, 3, 2.9999, 2.5, 2.6, 2.7, 2.6, 2.6, 2.6, 2.6, 2, 2, 2, 2, 2, 2]
CASES = """
s.LambdaLR(o, lambda e: 0.95**e)
s.LambdaLR(o, [lambda e: 1 / (1 + e), lambda e: 0.9**e])
s.MultiplicativeLR(o, lambda e: 0.95 - 0.01 * e)
s.StepLR(o, 3, 0.5)
s.MultiStepLR(o, [2, 5, 5, 11], 0.3)
s.ConstantLR(o, 0.25, 4)
s.LinearLR(o, 0.2, 0.9, 7)
s.LinearLR(o)
s.ExponentialLR(o, 0.9)
s.PolynomialLR(o, 8, 1.7)
s.PolynomialLR(o)
s.CosineAnnealingLR(o, 6, 0.01)
s.CosineAnnealingLR(o, 30)
s.CosineAnnealingWarmRestarts(o, 4, 1, 0.02)
s.CosineAnnealingWarmRestarts(o, 3, 2)
s.CyclicLR(o, 0.01, 0.3, 3, 5)
s.CyclicLR(o, [0.01, 0.1], [0.3, 0.9], 4, mode='triangular2', base_momentum=0.7)
s.CyclicLR(o, 0.01, 0.3, 4, mode='exp_range', gamma=0.97, cycle_momentum=False)
s.CyclicLR(o, 0.01, 0.3, 4, scale_fn=lambda x: 1 / x, scale_mode='cycle')
Adam: s.CyclicLR(o, 0.01, 0.3, 4, cycle_momentum=False)
s.OneCycleLR(o, 0.7, total_steps=21)
s.OneCycleLR(o, [0.7, 0.9], epochs=3, steps_per_epoch=8, pct_start=0.4, anneal_strategy='linear')
s.OneCycleLR(o, 0.7, total_steps=25, three_phase=True, div_factor=10.0)
Adam: s.OneCycleLR(o, 0.7, total_steps=21, final_div_factor=50.0)
s.ReduceLROnPlateau(o)
s.ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=2, min_lr=0.02)
s.ReduceLROnPlateau(o, 'max', 0.5, 2, threshold=0.2, threshold_mode='abs', min_lr=[0.01, 0.2])
s.SequentialLR(o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)], [3])
s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingLR(o, 8), s.StepLR(o, 2)], [4, 12])
s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)])
s.ChainedScheduler([s.LinearLR(o, 0.1, 1.0, 4), s.StepLR(o, 5, 0.5)])
w.SWALR(o, 0.05, 5)
w.SWALR(o, [0.05, 0.2], 8, 'linear')
""".strip().splitlines()


def make(torch, case):
    """Optimizer and scheduler of a case."""
    from importlib import import_module

    s = import_module(torch.__name__ + ".optim.lr_scheduler")
    name, _, text = case.rpartition(": ") if case.startswith("Adam: ") else ("", "", case)
    params = [torch.zeros(1, requires_grad=True) for _ in range(2)]
    groups = [{"params": [params[0]], "lr": 0.1}, {"params": [params[1]], "lr": 0.5}]
    if name == "Adam":
        o = torch.optim.Adam(groups, lr=0.3)
    else:
        o = torch.optim.SGD(groups, lr=0.3, momentum=0.9)
    w = import_module(torch.__name__ + ".optim.swa_utils")
    return o, eval(text, {"s": s, "w": w, "o": o})


def state(o):
    """Rates and momenta of an optimizer's groups."""
    return [
        [float(g["lr"]), g["momentum"] if "momentum" in g else g["betas"][0]]
        for g in o.param_groups
    ]


def advance(o, scheduler, step):
    o.step()
    if type(scheduler).__name__ == "ReduceLROnPlateau":
        scheduler.step(METRICS[step])
    else:
        scheduler.step()


def run(torch, case, steps=20):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        o, scheduler = make(torch, case)
        seen = [state(o)]
        for step in range(steps):
            advance(o, scheduler, step)
            seen.append(state(o))
    return seen


if __name__ == "__main__":
    # Records: python3 tests/python/schedules.py tests/python/data/schedules.json, with PyTorch.
    import json
    import sys

    import torch

    with open(sys.argv[1], "w", encoding="ascii") as file:
        lines = (f"{json.dumps(c)}: {json.dumps(run(torch, c))}" for c in CASES)
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
