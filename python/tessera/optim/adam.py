"""Adam, and AdamW, which decays weights apart from the gradient."""

from .. import _C
from .optimizer import (
    Optimizer,
    check,
    check_betas,
    check_ways,
    new_step,
    number,
    zeros_like,
)

Tensor = _C.Tensor


class Adam(Optimizer):
    """Steps by the mean of gradients over the root of the mean of their squares."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        check(lr, "learning rate")
        check(eps, "epsilon value")
        check_betas(betas)
        check(weight_decay, "weight_decay value")
        check_ways(foreach, fused, differentiable)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=decoupled_weight_decay,
        )
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("capturable", False)
            group.setdefault("differentiable", False)
            group.setdefault("decoupled_weight_decay", self._decoupled)
            group.setdefault("fused", None)
            _steps_as_tensors(self.state, group)

    _decoupled = False

    def step(self, closure=None):
        return self._run_step(closure)

    def _step_group(self, group, params, grads):
        amsgrad = group["amsgrad"]
        states = []
        for p in params:
            state = self.state[p]
            if not state:
                state["step"] = new_step(p, group)
                state["exp_avg"] = zeros_like(p)
                state["exp_avg_sq"] = zeros_like(p)
                if amsgrad:
                    state["max_exp_avg_sq"] = zeros_like(p)
            states.append(state)
        beta1, beta2 = group["betas"]
        _C.ops["_adam_step_"](
            params,
            grads,
            [s["exp_avg"] for s in states],
            [s["exp_avg_sq"] for s in states],
            [s["max_exp_avg_sq"] for s in states] if amsgrad else [],
            [s["step"] for s in states],
            lr=number(group["lr"]),
            beta1=number(beta1),
            beta2=number(beta2),
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )


def _steps_as_tensors(state, group):
    """Counts of steps in states of long ago were plain numbers."""
    for p in group["params"]:
        mine = state.get(p)
        if mine and "step" in mine and not isinstance(mine["step"], Tensor):
            step = new_step(p, group)
            step.fill_(float(mine["step"]))
            mine["step"] = step


class AdamW(Adam):
    """Adam whose weight decay is a factor of the weights."""

    _decoupled = True

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
