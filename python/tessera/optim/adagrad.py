"""Adagrad."""

from .. import _C
from .one_pass import OnePass, column
from .optimizer import check, check_ways, new_step, number


class Adagrad(OnePass):
    """Steps by the gradient over the root of the sum of all its squares."""

    _newer = {"fused": None}

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        check(lr, "learning rate")
        check(lr_decay, "lr_decay value")
        check(weight_decay, "weight_decay value")
        check(initial_accumulator_value, "initial_accumulator_value value")
        check(eps, "epsilon value")
        check_ways(foreach, fused, differentiable)
        defaults = dict(
            lr=lr,
            lr_decay=lr_decay,
            eps=eps,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            fused=fused,
        )
        self._step_supports_amp_scaling = bool(fused)
        super().__init__(params, defaults)
        for group in self.param_groups:
            self._start(group)

    def _start(self, group):
        import tessera as torch

        for p in group["params"]:
            state = self.state[p]
            if state:
                continue
            first = group["initial_accumulator_value"]
            if p.is_complex():
                first = complex(first, first)
            state["step"] = new_step(p, group)
            state["sum"] = torch.full(p.shape, first, dtype=p.dtype, device=p.device)

    def share_memory(self):
        """Moves the state to memory that other processes can map."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _step_group(self, group, params, grads):
        self._start(group)  # of groups that were added
        states = [self.state[p] for p in params]
        _C.ops["_adagrad_step_"](
            params,
            grads,
            column(states, "sum"),
            column(states, "step"),
            lr=number(group["lr"]),
            lr_decay=group["lr_decay"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
