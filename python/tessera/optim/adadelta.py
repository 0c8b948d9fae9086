"""Adadelta."""

from .. import _C
from .adam import _steps_as_tensors
from .optimizer import Optimizer, check, check_ways, new_step, number, zeros_like


class Adadelta(Optimizer):
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
        states = []
        for p in params:
            state = self.state[p]
            if not state:
                state["step"] = new_step(p, group)
                state["square_avg"] = zeros_like(p)
                state["acc_delta"] = zeros_like(p)
            states.append(state)
        _C.ops["_adadelta_step_"](
            params,
            grads,
            [s["square_avg"] for s in states],
            [s["acc_delta"] for s in states],
            [s["step"] for s in states],
            lr=number(group["lr"]),
            rho=group["rho"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
