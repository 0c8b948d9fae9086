"""Every optimizer against PyTorch's numbers; states, groups, hooks, refusals."""

import copy
import json
from pathlib import Path

import pytest
from optimizers import CASES, flat, parameters, run, state_of, step, tensor

import tessera as torch
from tessera import nn, optim

RECORDED = json.loads((Path(__file__).parent / "data" / "optimizers.json").read_text())


def make(case, params):
    name, _, options = case.partition("(")
    return eval(f"make(params, {options}", {"make": getattr(optim, name), "params": params})


def close(got, wanted):
    return got == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_steps(case, device):
    seen, state = run(torch, case, device)
    wanted_seen, wanted_state = RECORDED[case]
    for mine, theirs in zip(seen, wanted_seen):
        for a, b in zip(mine, theirs):
            # Line searches add up what rounding does to them.
            assert close(a, b) if "LBFGS" not in case else a == pytest.approx(b, rel=1e-9)
    if state:
        for mine, theirs in zip(state, wanted_state):
            assert set(mine) | {"step"} == set(theirs) | {"step"}
            for key in theirs:
                assert close(mine[key], theirs[key]), key


@pytest.mark.parametrize("case", [c for c in CASES if "LBFGS" not in c])
def test_going_on_from_a_saved_state(case):
    params = parameters(torch)
    optimizer = make(case, params)
    for t in range(6):
        step(torch, optimizer, params, t)
    saved = copy.deepcopy(optimizer.state_dict())
    twins = [p.detach().clone().requires_grad_() for p in params]
    other = make(case, twins)
    other.load_state_dict(saved)
    for t in range(6, 9):
        step(torch, optimizer, params, t)
        step(torch, other, twins, t)
    # As in PyTorch, factors that were kept in float32 are in the parameter's dtype from then on.
    rel = 1e-6 if "NAdam" in case or "ASGD" in case else 0
    for p, q in zip(params, twins):
        assert flat(p.tolist()) == pytest.approx(flat(q.tolist()), rel=rel, abs=0)
    for mine, theirs in zip(state_of(optimizer, params), state_of(other, twins)):
        assert mine.keys() == theirs.keys()
        for key in mine:
            assert mine[key] == pytest.approx(theirs[key], rel=rel, abs=0)


@pytest.mark.parametrize("case", [c for c in CASES if "LBFGS" not in c])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_narrower_dtypes(case, dtype, device):
    """Near the numbers of float64, in the parameters' own dtype."""
    dtype = getattr(torch, dtype)
    params = [p.detach().to(dtype).to(device).requires_grad_() for p in parameters(torch)]
    optimizer = make(case, params)
    for t in range(5):
        for i, p in enumerate(params):
            p.grad = tensor(torch, p.shape, t * 31 + i * 5).to(dtype).to(device)
        optimizer.step()
    for p, wanted in zip(params, RECORDED[case][0][1]):
        assert p.dtype == dtype and p.device.type == device
        rel = 1e-4 if dtype == torch.float32 else 0.15
        assert flat(p.tolist()) == pytest.approx(wanted, rel=rel, abs=rel)
        for value in optimizer.state[p].values():
            if value.dim() > 0:
                assert value.dtype == dtype


def test_adafactor(device):
    """By the formulas, in Python's floats."""
    torch.manual_seed(0)
    w = tensor(torch, (3, 2), 40).to(device).requires_grad_()
    b = tensor(torch, (4,), 41).to(device).requires_grad_()
    optimizer = optim.Adafactor([w, b], lr=0.05, weight_decay=0.1, d=1.5)
    eps1, eps2 = torch.finfo(torch.float64).eps if hasattr(torch, "finfo") else 2.0**-52, 1e-3
    W, B = w.detach().tolist(), b.detach().tolist()
    row, col, var = [0.0] * 3, [0.0] * 2, [0.0] * 4
    rms = lambda xs: (sum(x * x for x in xs) / len(xs)) ** 0.5
    for t in range(6):
        gw, gb = tensor(torch, (3, 2), t * 31), tensor(torch, (4,), t * 31 + 5)
        w.grad, b.grad = gw.to(device), gb.to(device)
        optimizer.step()
        n = t + 1
        share, rho = n**-0.8, min(0.05, n**-0.5)
        g = gw.tolist()
        alpha = max(eps2, rms(flat(W))) * rho
        W = [[x * (1 - 0.05 * 0.1) for x in r] for r in W]
        row = [r + share * (rms(x) ** 2 - r) for r, x in zip(row, g)]
        col = [c + share * (rms([x[j] for x in g]) ** 2 - c) for j, c in enumerate(col)]
        mean = max(sum(row) / 3, eps1)
        u = [
            [g[i][j] / max(row[i] * col[j] / mean, eps1**2) ** 0.5 for j in range(2)]
            for i in range(3)
        ]
        scale = alpha / max(1.0, rms(flat(u)) / 1.5)
        W = [[x - scale * y for x, y in zip(r, s)] for r, s in zip(W, u)]
        g = gb.tolist()
        alpha = max(eps2, rms(B)) * rho
        B = [x * (1 - 0.05 * 0.1) for x in B]
        var = [v + share * (x * x - v) for v, x in zip(var, g)]
        u = [x / max(v, eps1**2) ** 0.5 for x, v in zip(g, var)]
        scale = alpha / max(1.0, rms(u) / 1.5)
        B = [x - scale * y for x, y in zip(B, u)]
        assert flat(w.tolist()) == pytest.approx(flat(W), rel=1e-11)
        assert b.tolist() == pytest.approx(B, rel=1e-11)
    assert set(optimizer.state[w]) == {"step", "row_var", "col_var"}
    assert set(optimizer.state[b]) == {"step", "variance"}


def test_decoupled_decay():
    """NAdam and RAdam with AdamW's decay: the weights shrink, the step is that without decay."""
    for name in ("NAdam", "RAdam"):
        cls = getattr(optim, name)
        a, b = (torch.full((1,), 2.0, requires_grad=True) for _ in range(2))
        with_decay = cls([a], lr=0.1, weight_decay=0.5, decoupled_weight_decay=True)
        without = cls([b], lr=0.1)
        a.grad, b.grad = torch.ones(1), torch.ones(1)
        with_decay.step()
        without.step()
        assert a.item() == pytest.approx(2 * (1 - 0.1 * 0.5) + b.item() - 2, rel=1e-6)


def test_state_dict():
    a, b = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(1))
    optimizer = optim.Adam([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1)
    a.grad, b.grad = torch.ones(2), torch.ones(1)
    optimizer.step()
    state = optimizer.state_dict()
    assert [g["params"] for g in state["param_groups"]] == [[0], [1]]
    assert state["param_groups"][1]["lr"] == 0.5
    assert set(state["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    step_count = state["state"][0]["step"]
    assert step_count.dtype == torch.float32 and step_count.shape == () and step_count.item() == 1
    double = optim.Adam([{"params": [a.detach().double()]}, {"params": [b.detach().double()]}])
    double.load_state_dict(state)
    p = double.param_groups[0]["params"][0]
    assert double.state[p]["exp_avg"].dtype == torch.float64
    assert double.state[p]["step"].dtype == torch.float32
    assert double.param_groups[1]["lr"] == 0.5
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optim.Adam([a]).load_state_dict(state)
    with pytest.raises(ValueError, match="doesn't match the size"):
        optim.Adam([{"params": [a, b]}, {"params": [torch.ones(1)]}]).load_state_dict(state)


def test_old_counts_of_steps():
    p = torch.ones(1, requires_grad=True)
    optimizer = optim.Adam([p])
    p.grad = torch.ones(1)
    optimizer.step()
    state = optimizer.state_dict()
    state["state"][0]["step"] = 7
    optimizer.load_state_dict(state)
    assert optimizer.state[p]["step"].item() == 7


def test_counts_on_the_device(device):
    p = torch.ones(2, device=device, requires_grad=True)
    optimizer = optim.Adam([p], capturable=True, lr=0.1)
    for _ in range(3):
        p.grad = torch.ones(2, device=device)
        optimizer.step()
    count = optimizer.state[p]["step"]
    assert count.device.type == device and count.item() == 3


def test_pickle_and_deepcopy():
    import pickle

    p = nn.Parameter(torch.ones(2))
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9)
    p.grad = torch.ones(2)
    optimizer.step()
    for twin in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        q = twin.param_groups[0]["params"][0]
        assert q is not p and q.tolist() == p.tolist()
        assert twin.state[q]["momentum_buffer"].tolist() == [1, 1]
        q.grad = torch.ones(2)
        twin.step()
        assert q.tolist() == pytest.approx([0.71, 0.71])


def test_hooks():
    from tessera.optim.optimizer import (
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    log = []
    p = torch.ones(1, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.1)
    handles = [
        optimizer.register_step_pre_hook(lambda o, a, k: log.append("pre")),
        optimizer.register_step_post_hook(lambda o, a, k: log.append("post")),
        register_optimizer_step_pre_hook(lambda o, a, k: log.append("global pre")),
        register_optimizer_step_post_hook(lambda o, a, k: log.append("global post")),
    ]
    optimizer.step()
    assert log == ["global pre", "pre", "post", "global post"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(log) == 4
    optimizer.register_step_pre_hook(lambda o, a, k: ((lambda: 8,), {}))
    assert optimizer.step(lambda: 5) == 8
    optimizer.register_state_dict_pre_hook(lambda o: log.append("saving"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    saved = optimizer.state_dict()
    assert saved["more"] == 1 and log[-1] == "saving"
    optimizer.register_load_state_dict_pre_hook(lambda o, state: log.append("loading"))
    optimizer.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    optimizer.load_state_dict(saved)
    assert log[-2:] == ["loading", "loaded"]


def test_an_optimizer_of_ones_own():
    class Halving(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"factor": 0.5})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.mul_(group["factor"])

    p = torch.ones(1, requires_grad=True)
    optimizer = Halving([p])
    seen = []
    optimizer.register_step_post_hook(lambda o, a, k: seen.append(p.item()))
    optimizer.step()
    optimizer.step()
    assert seen == [0.5, 0.25]
    assert "factor: 0.5" in repr(optimizer)


def test_names_of_parameters():
    net = nn.Linear(2, 1)
    optimizer = optim.SGD(net.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is net.weight
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [torch.ones(1)]})
    with pytest.raises(ValueError, match="Some param names are missing"):
        optim.SGD([("a", torch.ones(1)), torch.ones(1)])


def test_groups():
    a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([a], lr=0.1)
    optimizer.add_param_group({"params": b, "lr": 1.0})
    a.grad, b.grad = torch.ones(1), torch.ones(1)
    optimizer.step()
    assert a.item() == pytest.approx(0.9) and b.item() == 0
    for group, error, words in (
        ({"params": [a]}, ValueError, "more than one parameter group"),
        ({"params": {torch.ones(1)}}, TypeError, "ordered collections"),
        ({"params": [1]}, TypeError, "can only optimize Tensors, but one of the params is int"),
        ({"params": [a * 2]}, ValueError, "can't optimize a non-leaf"),
        ([], TypeError, "param_group must be a dict"),
    ):
        with pytest.raises(error, match=words):
            optimizer.add_param_group(group)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([a, a], lr=0.1)


def test_zero_grad():
    p = torch.ones(2, requires_grad=True)
    optimizer = optim.Adam([p])
    (p * 2).sum().backward()
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad and grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert p.grad is None
    before = p.tolist()
    optimizer.step()
    assert p.tolist() == before and not optimizer.state


def test_gradients_stay_off():
    """A step leaves no graph, and the mode as it was."""
    p = torch.ones(2, requires_grad=True)
    optimizer = optim.Adam([p], lr=0.1)
    p.grad = torch.ones(2)
    seen = []

    def closure():
        seen.append(torch.is_grad_enabled())
        return 3

    with torch.no_grad():
        assert optimizer.step(closure) == 3
        assert not torch.is_grad_enabled()
    assert seen == [True] and torch.is_grad_enabled()
    assert p.is_leaf and p.requires_grad and p.grad_fn is None
    assert not optimizer.state[p]["exp_avg"].requires_grad


@pytest.mark.parametrize(
    "make_it, error, words",
    [
        (lambda p: optim.SGD(p, lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.SGD(p, 0.1, nesterov=True), ValueError, "Nesterov momentum requires"),
        (
            lambda p: optim.Adam(p, betas=(1.0, 0.9)),
            ValueError,
            "Invalid beta parameter at index 0",
        ),
        (
            lambda p: optim.Adam(p, betas=(0.9, 1.0)),
            ValueError,
            "Invalid beta parameter at index 1",
        ),
        (lambda p: optim.Adam(p, eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda p: optim.AdamW(p, weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda p: optim.Adam(p, fused=True, foreach=True), RuntimeError, "cannot be `True`"),
        (lambda p: optim.Adadelta(p, rho=2), ValueError, "Invalid rho value: 2"),
        (lambda p: optim.Rprop(p, etas=(1.5, 2)), ValueError, "Invalid eta values: 1.5, 2"),
        (lambda p: optim.NAdam(p, momentum_decay=-1), ValueError, "Invalid momentum_decay value"),
        (lambda p: optim.RMSprop(p, alpha=-1), ValueError, "Invalid alpha value: -1"),
        (lambda p: optim.Adagrad(p, lr_decay=-1), ValueError, "Invalid lr_decay value: -1"),
        (lambda p: optim.Adafactor(p, d=0.5), ValueError, "Clipping threshold d should be >= 1"),
        (
            lambda p: optim.LBFGS([{"params": p}, {"params": [torch.ones(1)]}]),
            ValueError,
            "per-param",
        ),
        (lambda p: optim.SparseAdam(p), NotImplementedError, "SparseAdam"),
        (lambda p: optim.Adam(p, lr=torch.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda p: optim.Adam([]), ValueError, "empty parameter list"),
        (lambda p: optim.Adam(p[0]), TypeError, "should be an iterable of Tensors or dicts"),
    ],
)
def test_refusals(make_it, error, words):
    with pytest.raises(error, match=words):
        make_it([torch.ones(1)])


def test_differentiable_is_refused_when_used():
    p = torch.ones(1, requires_grad=True)
    p.grad = torch.ones(1)
    with pytest.raises(NotImplementedError, match="differentiable"):
        optim.Adam([p], differentiable=True).step()


def test_all_ways_to_step_are_one():
    for options in ({"foreach": True}, {"fused": True}, {"foreach": False}):
        p = torch.ones(1, requires_grad=True)
        p.grad = torch.ones(1)
        optim.Adam([p], lr=0.1, **options).step()
        assert p.item() == pytest.approx(0.9)


def test_adamw_decays_apart_also_with_a_state_of_adam():
    p, q = (nn.Parameter(torch.ones(2)) for _ in range(2))
    adam = optim.Adam([p], weight_decay=0.1)
    p.grad = torch.ones(2)
    adam.step()
    adamw = optim.AdamW([q])
    adamw.load_state_dict(adam.state_dict())
    assert adamw.param_groups[0]["decoupled_weight_decay"] is True
    assert adamw.param_groups[0]["weight_decay"] == 0.1
