"""Optimizers whose step is one call of an operator over all parameters of a group."""

from .._C import Tensor
from .optimizer import Optimizer, begin_state, new_step


def column(states, name):
    return [state[name] for state in states]


class OnePass(Optimizer):
    # Options that groups of older state dicts lack, beside those that all have.
    _newer = {"capturable": False}

    def __setstate__(self, state):
        super().__setstate__(state)
        options = {"foreach": None, "maximize": False, "differentiable": False, **self._newer}
        for group in self.param_groups:
            for name, value in options.items():
                group.setdefault(name, value)
            self._count_in_tensors(group)

    def _count_in_tensors(self, group):
        """Counts of steps in states of long ago were plain numbers."""
        for p in group["params"]:
            mine = self.state.get(p)
            if mine and "step" in mine and not isinstance(mine["step"], Tensor):
                step = new_step(p, group)
                step.fill_(float(mine["step"]))
                mine["step"] = step

    def step(self, closure=None):
        return self._run_step(closure)

    def _states(self, group, params):
        """The states of parameters, begun where there is none."""
        states = []
        for p in params:
            state = self.state[p]
            if not state:
                begun = {"step": new_step(p, group)}
                self._begin(begun, p, group)
                begin_state(state, begun)
            states.append(state)
        return states
