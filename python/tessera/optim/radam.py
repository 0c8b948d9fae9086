"""RAdam."""

from .. import _C
from .adam import _steps_as_tensors
from .optimizer import (
    Optimizer,
    check,
    check_betas,
    check_ways,
    new_step,
    number,
    zeros_like,
)


class RAdam(Optimizer):
    """Adam that waits with its second moment until that is known well enough."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
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
        check_ways(foreach, None, differentiable)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            decoupled_weight_decay=decoupled_weight_decay,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("decoupled_weight_decay", False)
            group.setdefault("capturable", False)
            _steps_as_tensors(self.state, group)

    def step(self, closure=None):
        return self._run_step(closure)

    def _step_group(self, group, params, grads):
        states = []
        for p in params:
            state = self.state[p]
            if not state:
                state["step"] = new_step(p, group)
                state["exp_avg"] = zeros_like(p)
                state["exp_avg_sq"] = zeros_like(p)
            states.append(state)
        beta1, beta2 = group["betas"]
        _C.ops["_radam_step_"](
            params,
            grads,
            [s["exp_avg"] for s in states],
            [s["exp_avg_sq"] for s in states],
            [s["step"] for s in states],
            lr=number(group["lr"]),
            beta1=beta1,
            beta2=beta2,
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )
