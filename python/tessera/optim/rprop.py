"""Rprop."""

from .. import _C
from .adam import _steps_as_tensors
from .optimizer import Optimizer, check, check_ways, new_step, number, zeros_like


class Rprop(Optimizer):
    """Steps by the gradient's sign; a size for each element, by whether the sign stays."""

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check(lr, "learning rate")
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        check_ways(foreach, None, differentiable)
        defaults = dict(
            lr=lr,
            etas=etas,
            step_sizes=step_sizes,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
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
                state["prev"] = zeros_like(p)
                lr = number(group["lr"])
                size = complex(lr, lr) if p.is_complex() else lr
                state["step_size"] = zeros_like(p).fill_(size)
            states.append(state)
        _C.ops["_rprop_step_"](
            params,
            grads,
            [s["prev"] for s in states],
            [s["step_size"] for s in states],
            [s["step"] for s in states],
            eta_minus=group["etas"][0],
            eta_plus=group["etas"][1],
            size_min=group["step_sizes"][0],
            size_max=group["step_sizes"][1],
            maximize=group["maximize"],
        )
