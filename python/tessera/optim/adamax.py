"""Adamax."""

from .. import _C
from .one_pass import OnePass, column
from .optimizer import check, check_betas, check_ways, number, zeros_like


class Adamax(OnePass):
    """Adam with the largest of recent gradients in the place of the mean of squares."""

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check(lr, "learning rate")
        check(eps, "epsilon value")
        check_betas(betas)
        check(weight_decay, "weight_decay value")
        check_ways(foreach, None, differentiable)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def _begin(self, state, p, group):
        state["exp_avg"] = zeros_like(p)
        state["exp_inf"] = zeros_like(p)

    def _step_group(self, group, params, grads):
        states = self._states(group, params)
        beta1, beta2 = group["betas"]
        _C.ops["_adamax_step_"](
            params,
            grads,
            column(states, "exp_avg"),
            column(states, "exp_inf"),
            column(states, "step"),
            lr=number(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
