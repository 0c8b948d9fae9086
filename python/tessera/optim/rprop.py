"""Rprop."""

from .. import _C
from .one_pass import OnePass, column
from .optimizer import check, check_ways, number, zeros_like


class Rprop(OnePass):
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

    def _begin(self, state, p, group):
        state["prev"] = zeros_like(p)
        lr = number(group["lr"])
        size = complex(lr, lr) if p.is_complex() else lr
        state["step_size"] = zeros_like(p).fill_(size)

    def _step_group(self, group, params, grads):
        states = self._states(group, params)
        _C.ops["_rprop_step_"](
            params,
            grads,
            column(states, "prev"),
            column(states, "step_size"),
            column(states, "step"),
            eta_minus=group["etas"][0],
            eta_plus=group["etas"][1],
            size_min=group["step_sizes"][0],
            size_max=group["step_sizes"][1],
            maximize=group["maximize"],
        )
