"""Adadelta."""

from .. import _C
from .one_pass import OnePass, column
from .optimizer import check, check_ways, number, zeros_like


class Adadelta(OnePass):
    """Steps by the gradient, scaled by what steps have been over what gradients have been."""

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        check(lr, "learning rate")
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check(eps, "epsilon value")
        check(weight_decay, "weight_decay value")
        check_ways(foreach, None, differentiable)
        defaults = dict(
            lr=lr,
            rho=rho,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            capturable=capturable,
            foreach=foreach,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def _begin(self, state, p, group):
        state["square_avg"] = zeros_like(p)
        state["acc_delta"] = zeros_like(p)

    def _step_group(self, group, params, grads):
        states = self._states(group, params)
        _C.ops["_adadelta_step_"](
            params,
            grads,
            column(states, "square_avg"),
            column(states, "acc_delta"),
            column(states, "step"),
            lr=number(group["lr"]),
            rho=group["rho"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
