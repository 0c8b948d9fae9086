"""Stochastic gradient descent."""

from .. import _C
from .optimizer import Optimizer, required

_step = _C.ops["_sgd_step_"]


class SGD(Optimizer):
    """One call of the step operator for all parameters of a group."""

    def __init__(
        self,
        params,
        lr=required,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
    ):
        if lr is not required and lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        if differentiable:
            raise NotImplementedError("SGD(differentiable=True) is not implemented in Tessera yet")
        defaults = dict(
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            foreach=foreach,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def step(self, closure=None):
        loss = self._closure_loss(closure)
        before = _C.is_grad_enabled()
        _C._set_grad_enabled(False)
        try:
            for group in self.param_groups:
                self._step_group(group)
        finally:
            _C._set_grad_enabled(before)
        return loss

    def _step_group(self, group):
        params = [p for p in group["params"] if p.grad is not None]
        if group["momentum"] == 0:
            self._run(group, params, [], False)
            return
        # Parameters whose momentum is not there yet start with their gradient.
        for first in (False, True):
            some = [p for p in params if ("momentum_buffer" not in self.state[p]) == first]
            for p in some:
                if first:
                    self.state[p]["momentum_buffer"] = _C.ops["zeros_like"](p)
            self._run(group, some, [self.state[p]["momentum_buffer"] for p in some], first)

    @staticmethod
    def _run(group, params, momenta, first):
        if params:
            _step(
                params,
                [p.grad for p in params],
                momenta,
                lr=group["lr"],
                momentum=group["momentum"],
                dampening=group["dampening"],
                weight_decay=group["weight_decay"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
                first=first,
            )
