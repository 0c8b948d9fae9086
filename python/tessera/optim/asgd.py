"""Averaged stochastic gradient descent."""

from .. import _C
from .one_pass import OnePass, column
from .optimizer import check, check_ways, new_step, number, zeros_like


class ASGD(OnePass):
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

    def _begin(self, state, p, group):
        state["eta"] = new_step(p, group).fill_(number(group["lr"]))
        state["mu"] = new_step(p, group).fill_(1.0)
        state["ax"] = zeros_like(p)

    def _step_group(self, group, params, grads):
        lr = number(group["lr"])
        states = self._states(group, params)
        _C.ops["_asgd_step_"](
            params,
            grads,
            column(states, "ax"),
            column(states, "eta"),
            column(states, "mu"),
            column(states, "step"),
            lr=lr,
            lambd=group["lambd"],
            alpha=group["alpha"],
            t0=group["t0"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
