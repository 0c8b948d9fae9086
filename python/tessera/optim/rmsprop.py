"""RMSprop."""

from .. import _C
from .one_pass import OnePass, column
from .optimizer import check, check_ways, number, zeros_like


class RMSprop(OnePass):
    """Steps by the gradient over the root of the running mean of its squares."""

    _newer = {"momentum": 0, "centered": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check(lr, "learning rate")
        check(eps, "epsilon value")
        check(momentum, "momentum value")
        check(weight_decay, "weight_decay value")
        check(alpha, "alpha value")
        check_ways(foreach, None, differentiable)
        defaults = dict(
            lr=lr,
            momentum=momentum,
            alpha=alpha,
            eps=eps,
            centered=centered,
            weight_decay=weight_decay,
            capturable=capturable,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def _begin(self, state, p, group):
        state["square_avg"] = zeros_like(p)
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = zeros_like(p)

    def _step_group(self, group, params, grads):
        momentum, centered = group["momentum"], group["centered"]
        states = self._states(group, params)
        _C.ops["_rmsprop_step_"](
            params,
            grads,
            column(states, "square_avg"),
            column(states, "grad_avg") if centered else [],
            column(states, "momentum_buffer") if momentum > 0 else [],
            column(states, "step"),
            lr=number(group["lr"]),
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum=momentum,
            maximize=group["maximize"],
        )
