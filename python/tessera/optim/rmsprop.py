"""RMSprop."""

from .. import _C
from .adam import _steps_as_tensors
from .optimizer import Optimizer, check, check_ways, new_step, number, zeros_like


class RMSprop(Optimizer):
    """Steps by the gradient over the root of the running mean of its squares."""

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

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("momentum", 0)
            group.setdefault("centered", False)
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("capturable", False)
            _steps_as_tensors(self.state, group)

    def step(self, closure=None):
        return self._run_step(closure)

    def _step_group(self, group, params, grads):
        momentum, centered = group["momentum"], group["centered"]
        states = []
        for p in params:
            state = self.state[p]
            if not state:
                state["step"] = new_step(p, group)
                state["square_avg"] = zeros_like(p)
                if momentum > 0:
                    state["momentum_buffer"] = zeros_like(p)
                if centered:
                    state["grad_avg"] = zeros_like(p)
            states.append(state)
        _C.ops["_rmsprop_step_"](
            params,
            grads,
            [s["square_avg"] for s in states],
            [s["grad_avg"] for s in states] if centered else [],
            [s["momentum_buffer"] for s in states] if momentum > 0 else [],
            [s["step"] for s in states],
            lr=number(group["lr"]),
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum=momentum,
            maximize=group["maximize"],
        )
