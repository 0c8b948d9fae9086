"""Stochastic gradient descent."""

from .. import _C
from .optimizer import Optimizer, check, check_ways, number, zeros_like


class SGD(Optimizer):
    """p -= lr * g, with momentum and weight decay."""

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        check(lr, "learning rate")
        check(momentum, "momentum value")
        check(weight_decay, "weight_decay value")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_ways(foreach, fused, differentiable)
        defaults = dict(
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            foreach=foreach,
            differentiable=differentiable,
            fused=fused,
        )
        self._step_supports_amp_scaling = bool(fused)
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", False)

    def step(self, closure=None):
        return self._run_step(closure)

    def _step_group(self, group, params, grads):
        if group["momentum"] == 0:
            self._run(group, params, grads, [], False)
            return
        state = self.state
        fresh = [state[p].get("momentum_buffer") is None for p in params]
        # A momentum that is not there yet starts with the gradient.
        for first in (False, True):
            some = [i for i, f in enumerate(fresh) if f == first]
            if not some:
                continue
            mine = [params[i] for i in some]
            if first:
                momenta = [zeros_like(p) for p in mine]
            else:
                momenta = [state[p]["momentum_buffer"] for p in mine]
            self._run(group, mine, [grads[i] for i in some], momenta, first)
            for p, momentum in zip(mine, momenta):
                state[p]["momentum_buffer"] = momentum

    @staticmethod
    def _run(group, params, grads, momenta, first):
        _C.ops["_sgd_step_"](
            params,
            grads,
            momenta,
            lr=number(group["lr"]),
            momentum=group["momentum"],
            dampening=group["dampening"],
            weight_decay=group["weight_decay"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
            first=first,
        )
