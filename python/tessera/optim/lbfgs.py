"""L-BFGS."""

import tessera as torch

from .optimizer import Optimizer, check


def _cubic_minimum(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through two points with their slopes is lowest, within the bounds."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        at = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        at = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(at, low), high)


def _strong_wolfe(evaluate, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """A step along d that lowers the function enough and flattens its slope."""
    d_norm = d.abs().max()
    g = g.clone()
    f_new, g_new = evaluate(t, d)
    evaluations = 1
    gtd_new = g_new.dot(d)
    t_prev, f_prev, g_prev, gtd_prev = 0, f, g, gtd
    done = False
    steps = 0
    # First a bracket in which such a step must be.
    while steps < max_ls:
        if f_new > (f + c1 * t * gtd) or (steps > 1 and f_new >= f_prev):
            bracket = [t_prev, t]
            bracket_f = [f_prev, f_new]
            bracket_g = [g_prev, g_new.clone()]
            bracket_gtd = [gtd_prev, gtd_new]
            break
        if abs(gtd_new) <= -c2 * gtd:
            bracket, bracket_f, bracket_g = [t], [f_new], [g_new]
            done = True
            break
        if gtd_new >= 0:
            bracket = [t_prev, t]
            bracket_f = [f_prev, f_new]
            bracket_g = [g_prev, g_new.clone()]
            bracket_gtd = [gtd_prev, gtd_new]
            break
        t_now = t
        t = _cubic_minimum(
            t_prev,
            f_prev,
            gtd_prev,
            t,
            f_new,
            gtd_new,
            bounds=(t + 0.01 * (t - t_prev), t * 10),
        )
        t_prev, f_prev, g_prev, gtd_prev = t_now, f_new, g_new.clone(), gtd_new
        f_new, g_new = evaluate(t, d)
        evaluations += 1
        gtd_new = g_new.dot(d)
        steps += 1
    if steps == max_ls:
        bracket, bracket_f, bracket_g = [0, t], [f, f_new], [g, g_new]
    # Then narrower ones.
    stuck = False
    low, high = (0, 1) if bracket_f[0] <= bracket_f[-1] else (1, 0)
    while not done and steps < max_ls:
        if abs(bracket[1] - bracket[0]) * d_norm < tolerance_change:
            break
        t = _cubic_minimum(
            bracket[0], bracket_f[0], bracket_gtd[0], bracket[1], bracket_f[1], bracket_gtd[1]
        )
        # A point too near an end twice in a row is moved away from it.
        eps = 0.1 * (max(bracket) - min(bracket))
        if min(max(bracket) - t, t - min(bracket)) < eps:
            if stuck or t >= max(bracket) or t <= min(bracket):
                near_max = abs(t - max(bracket)) < abs(t - min(bracket))
                t = max(bracket) - eps if near_max else min(bracket) + eps
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        f_new, g_new = evaluate(t, d)
        evaluations += 1
        gtd_new = g_new.dot(d)
        steps += 1
        if f_new > (f + c1 * t * gtd) or f_new >= bracket_f[low]:
            bracket[high], bracket_f[high] = t, f_new
            bracket_g[high], bracket_gtd[high] = g_new.clone(), gtd_new
            low, high = (0, 1) if bracket_f[0] <= bracket_f[1] else (1, 0)
        else:
            if abs(gtd_new) <= -c2 * gtd:
                done = True
            elif gtd_new * (bracket[high] - bracket[low]) >= 0:
                bracket[high], bracket_f[high] = bracket[low], bracket_f[low]
                bracket_g[high], bracket_gtd[high] = bracket_g[low], bracket_gtd[low]
            bracket[low], bracket_f[low] = t, f_new
            bracket_g[low], bracket_gtd[low] = g_new.clone(), gtd_new
    return bracket_f[low], bracket_g[low], bracket[low], evaluations


def _reals(t):
    """A complex tensor as pairs of reals, in the same memory."""
    return torch.view_as_real(t) if t.is_complex() else t


class LBFGS(Optimizer):
    """Newton's method with the inverse Hessian approximated from the last gradients."""

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        check(lr, "learning rate")
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = dict(
            lr=lr,
            max_iter=max_iter,
            max_eval=max_eval,
            tolerance_grad=tolerance_grad,
            tolerance_change=tolerance_change,
            history_size=history_size,
            line_search_fn=line_search_fn,
        )
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    def __setstate__(self, state):
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    def _numel(self):
        if self._numel_cache is None:
            self._numel_cache = sum(_reals(p).numel() for p in self._params)
        return self._numel_cache

    def _gather_flat_grad(self):
        return torch.cat(
            [
                torch.zeros_like(_reals(p)).reshape(-1)
                if p.grad is None
                else _reals(p.grad).reshape(-1)
                for p in self._params
            ]
        )

    def _add_grad(self, step_size, direction):
        at = 0
        for p in map(_reals, self._params):
            size = p.numel()
            p.add_(direction[at : at + size].view_as(p), alpha=step_size)
            at += size

    def _clone_param(self):
        return [p.clone() for p in self._params]

    def _set_param(self, saved):
        for p, value in zip(self._params, saved):
            p.copy_(value)

    def _directional_evaluate(self, closure, x, t, d):
        self._add_grad(t, d)
        loss = float(closure())
        flat_grad = self._gather_flat_grad()
        self._set_param(x)
        return loss, flat_grad

    def step(self, closure):
        """One step: up to max_iter iterations, each with one or more calls of closure."""
        with torch.no_grad():
            return self._step(lambda: self._closure_loss(closure))

    def _direction(self, state, flat_grad, d, t, prev_flat_grad, history_size):
        """The next direction, from the history of steps and changes of the gradient."""
        if state["n_iter"] == 1:
            return flat_grad.neg(), [], [], [], 1
        old_dirs, old_stps, ro, h_diag = (
            state["old_dirs"],
            state["old_stps"],
            state["ro"],
            state["H_diag"],
        )
        y = flat_grad.sub(prev_flat_grad)
        s = d.mul(t)
        ys = y.dot(s)
        if ys > 1e-10:
            if len(old_dirs) == history_size:
                old_dirs.pop(0)
                old_stps.pop(0)
                ro.pop(0)
            old_dirs.append(y)
            old_stps.append(s)
            ro.append(1.0 / ys)
            h_diag = ys / y.dot(y)
        count = len(old_dirs)
        al = [None] * count
        q = flat_grad.neg()
        for i in range(count - 1, -1, -1):
            al[i] = old_stps[i].dot(q) * ro[i]
            q.add_(old_dirs[i] * -al[i])
        d = r = torch.mul(q, h_diag)
        for i in range(count):
            be_i = old_dirs[i].dot(r) * ro[i]
            r.add_(old_stps[i] * (al[i] - be_i))
        state["al"] = al
        return d, old_dirs, old_stps, ro, h_diag

    def _step(self, closure):
        group = self.param_groups[0]
        lr = float(group["lr"])
        max_iter, max_eval = group["max_iter"], group["max_eval"]
        tolerance_grad, tolerance_change = group["tolerance_grad"], group["tolerance_change"]
        # All state is the first parameter's: there is one vector.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        orig_loss = closure()
        loss = float(orig_loss)
        evaluations = 1
        state["func_evals"] += 1
        flat_grad = self._gather_flat_grad()
        if flat_grad.abs().max() <= tolerance_grad:
            return orig_loss
        d, t = state.get("d"), state.get("t")
        prev_flat_grad, prev_loss = state.get("prev_flat_grad"), state.get("prev_loss")
        n_iter = 0
        while n_iter < max_iter:
            n_iter += 1
            state["n_iter"] += 1
            d, old_dirs, old_stps, ro, h_diag = self._direction(
                state, flat_grad, d, t, prev_flat_grad, group["history_size"]
            )
            state.update(old_dirs=old_dirs, old_stps=old_stps, ro=ro, H_diag=h_diag)
            prev_flat_grad = flat_grad.clone()
            prev_loss = loss
            if state["n_iter"] == 1:
                t = min(1.0, 1.0 / float(flat_grad.abs().sum())) * lr
            else:
                t = lr
            gtd = flat_grad.dot(d)
            if gtd > -tolerance_change:
                break
            calls = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                x_init = self._clone_param()
                loss, flat_grad, t, calls = _strong_wolfe(
                    lambda t, d, x=x_init: self._directional_evaluate(closure, x, t, d),
                    t,
                    d,
                    loss,
                    flat_grad,
                    gtd,
                )
                t = float(t)
                self._add_grad(t, d)
                flat = flat_grad.abs().max() <= tolerance_grad
            else:
                self._add_grad(t, d)
                flat = False
                if n_iter != max_iter:
                    loss = float(closure())
                    flat_grad = self._gather_flat_grad()
                    flat = flat_grad.abs().max() <= tolerance_grad
                    calls = 1
            evaluations += calls
            state["func_evals"] += calls
            if (
                n_iter == max_iter
                or evaluations >= max_eval
                or flat
                or d.mul(t).abs().max() <= tolerance_change
                or abs(loss - prev_loss) < tolerance_change
            ):
                break
        state.update(d=d, t=t, prev_flat_grad=prev_flat_grad, prev_loss=prev_loss)
        return orig_loss
