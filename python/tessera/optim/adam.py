"""Adam, and AdamW, which decays weights apart from the gradient."""

from .. import _C
from .one_pass import OnePass, column
from .optimizer import check, check_betas, check_ways, number, zeros_like

Tensor = _C.Tensor


class Adam(OnePass):
    """Steps by the mean of gradients over the root of the mean of their squares."""

    _newer = {
        "amsgrad": False,
        "capturable": False,
        "fused": None,
        "decoupled_weight_decay": False,
    }

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
        self._step_supports_amp_scaling = bool(fused)
        super().__init__(params, defaults)

    def _begin(self, state, p, group):
        state["exp_avg"] = zeros_like(p)
        state["exp_avg_sq"] = zeros_like(p)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(p)

    def _step_group(self, group, params, grads):
        amsgrad = group["amsgrad"]
        states = self._states(group, params)
        beta1, beta2 = group["betas"]
        _C.ops["_adam_step_"](
            params,
            grads,
            column(states, "exp_avg"),
            column(states, "exp_avg_sq"),
            column(states, "max_exp_avg_sq") if amsgrad else [],
            column(states, "step"),
            lr=number(group["lr"]),
            beta1=number(beta1),
            beta2=number(beta2),
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )


class AdamW(Adam):
    """Adam whose weight decay is a factor of the weights."""

    _newer = {**Adam._newer, "decoupled_weight_decay": True}

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:  # also of a state that Adam has saved
            group["decoupled_weight_decay"] = True

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
