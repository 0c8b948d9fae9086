"""Averaged stochastic gradient descent."""

from .. import _C
from .adam import _steps_as_tensors
from .optimizer import Optimizer, check, check_ways, new_step, number, zeros_like


class ASGD(Optimizer):
    """Gradient descent with decreasing steps, and the mean of where it has been."""

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check(lr, "learning rate")
        check(weight_decay, "weight_decay value")
        check_ways(foreach, None, differentiable)
        defaults = dict(
            lr=lr,
            lambd=lambd,
            alpha=alpha,
            t0=t0,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("capturable", False)
            _steps_as_tensors(self.state, group)

    def step(self, closure=None):
        return self._run_step(closure)

    def _step_group(self, group, params, grads):
        lr = number(group["lr"])
        states = []
        for p in params:
            state = self.state[p]
            if not state:
                state["step"] = new_step(p, group)
                state["eta"] = new_step(p, group).fill_(lr)
                state["mu"] = new_step(p, group).fill_(1.0)
                state["ax"] = zeros_like(p)
            states.append(state)
        _C.ops["_asgd_step_"](
            params,
            grads,
            [s["ax"] for s in states],
            [s["eta"] for s in states],
            [s["mu"] for s in states],
            [s["step"] for s in states],
            lr=lr,
            lambd=group["lambd"],
            alpha=group["alpha"],
            t0=group["t0"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
