"""Adafactor."""

from .. import _C
from .optimizer import Optimizer, begin_state, check, check_ways, new_step, number, zeros_like

Tensor = _C.Tensor


class Adafactor(Optimizer):
    """Adam with the second moments of a matrix kept as a row and a column."""

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not number(lr) >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        check(weight_decay, "weight_decay value")
        check_ways(foreach, None, False)
        defaults = dict(
            lr=lr,
            beta2_decay=beta2_decay,
            eps=eps,
            d=d,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
            differentiable=False,
        )
        super().__init__(params, defaults)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)

    def step(self, closure=None):
        return self._run_step(closure)

    def _step_group(self, group, params, grads):
        import tessera as torch

        states = []
        for p in params:
            if p.is_complex():
                raise RuntimeError("Adafactor does not support complex parameters")
            state = self.state[p]
            if not state:
                begun = {"step": new_step(p, group)}
                if p.dim() > 1:
                    rows, columns = list(p.shape), list(p.shape)
                    rows[-1] = columns[-2] = 1
                    like = {"dtype": p.dtype, "device": p.device}
                    begun["row_var"] = torch.zeros(rows, **like)
                    begun["col_var"] = torch.zeros(columns, **like)
                else:
                    begun["variance"] = zeros_like(p)
                begin_state(state, begun)
            states.append(state)
        eps1, eps2 = group["eps"]
        _C.ops["_adafactor_step_"](
            params,
            grads,
            [s["row_var"] if "row_var" in s else s["variance"] for s in states],
            [s["col_var"] if "col_var" in s else s["variance"] for s in states],
            [s["step"] for s in states],
            lr=number(group["lr"]),
            beta2_decay=group["beta2_decay"],
            eps1=-1.0 if eps1 is None else eps1,
            eps2=eps2,
            d=group["d"],
            weight_decay=group["weight_decay"],
            maximize=group["maximize"],
        )
