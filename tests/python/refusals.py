"""Calls that must be refused, a line each in data/refusals.txt; test_refusals.py runs them.

A line is run with these names: torch, nn, F, optim, lr (optim.lr_scheduler), D (distributions),
prune, P (nn.utils.parametrize), par (nn.utils.parametrizations), rnn (nn.utils.rnn), init, data
(utils.data), x (a 2 x 3 tensor), m (nn.Linear(3, 4)), net (a Sequential with a Linear in it), opt
(an SGD of m with momentum), amp (torch.amp), ck (utils.checkpoint), func, AF
(autograd.functional), swa (optim.swa_utils).
"""

from pathlib import Path

CASES = (Path(__file__).parent / "data" / "refusals.txt").read_text().splitlines()


def scope(torch):
    """The names that a case may use, made anew for each."""
    import importlib

    def module(name):
        return importlib.import_module(f"{torch.__name__}.{name}")

    nn, optim = torch.nn, torch.optim
    torch.manual_seed(0)
    m = nn.Linear(3, 4)
    return {
        "torch": torch, "nn": nn, "F": nn.functional, "optim": optim, "lr": optim.lr_scheduler,
        "D": module("distributions"), "prune": module("nn.utils.prune"),
        "P": module("nn.utils.parametrize"), "par": module("nn.utils.parametrizations"),
        "rnn": module("nn.utils.rnn"), "init": nn.init, "data": module("utils.data"),
        "x": torch.arange(6.0).reshape(2, 3), "m": m,
        "net": nn.Sequential(nn.Linear(3, 4), nn.ReLU()),
        "opt": optim.SGD(m.parameters(), lr=0.1, momentum=0.9), "amp": module("amp"),
        "ck": module("utils.checkpoint"), "func": module("func"),
        "AF": module("autograd.functional"), "swa": module("optim.swa_utils"),
    }  # fmt: skip


def outcome(torch, case):
    """["kind of error", "its message"], or null where the call is accepted."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eval(case, scope(torch))
        except Exception as error:
            return [type(error).__name__, str(error)]
    return None


if __name__ == "__main__":  # with PyTorch: writes data/refusals.json
    import json

    import torch

    found = {case: outcome(torch, case) for case in CASES}
    about = {"pytorch": torch.__version__, "cases": found}
    file = Path(__file__).parent / "data" / "refusals.json"
    file.write_text(json.dumps(about, indent=0) + "\n")
    print(len(found), "cases,", sum(v is None for v in found.values()), "accepted")
