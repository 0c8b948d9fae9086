"""NAdam."""

from .. import _C
from .one_pass import OnePass, column
from .optimizer import check, check_betas, check_ways, new_step, number, zeros_like


class NAdam(OnePass):
    """Adam with Nesterov's momentum."""

    _newer = {"decoupled_weight_decay": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        check(lr, "learning rate")
        check(eps, "epsilon value")
        check_betas(betas)
        check(weight_decay, "weight_decay value")
        check(momentum_decay, "momentum_decay value")
        check_ways(foreach, None, differentiable)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def _begin(self, state, p, group):
        state["mu_product"] = new_step(p, group).fill_(1.0)
        state["exp_avg"] = zeros_like(p)
        state["exp_avg_sq"] = zeros_like(p)

    def _step_group(self, group, params, grads):
        states = self._states(group, params)
        beta1, beta2 = group["betas"]
        _C.ops["_nadam_step_"](
            params,
            grads,
            column(states, "exp_avg"),
            column(states, "exp_avg_sq"),
            column(states, "mu_product"),
            column(states, "step"),
            lr=number(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum_decay=group["momentum_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )
