"""What all optimizers share: groups of parameters with options, state by parameter, hooks."""

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Iterable
from copy import deepcopy
from itertools import chain

from .. import _C
from .._functions import typename
from ..utils.hooks import RemovableHandle

Tensor = _C.Tensor


class _Required:
    """In the place of a default that every group must give itself."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()
ParamsT = Iterable
StateDict = dict

_global_optimizer_pre_hooks = OrderedDict()
_global_optimizer_post_hooks = OrderedDict()


def _register(hooks, hook, prepend=False):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook):
    """Runs hook(optimizer, args, kwargs) before every optimizer's step."""
    return _register(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Runs hook(optimizer, args, kwargs) after every optimizer's step."""
    return _register(_global_optimizer_post_hooks, hook)


def _named(name):
    """A scope in profiles."""
    from ..autograd.profiler import record_function

    return record_function(name)


def _with_hooks(step):
    """A class's step, with the hooks around it."""

    def _hooked(self, *args, **kwargs):
        self._opt_called = True  # schedulers warn of steps in the wrong order
        if not (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _global_optimizer_pre_hooks
            or _global_optimizer_post_hooks
        ):
            return step(self, *args, **kwargs)
        before = (*_global_optimizer_pre_hooks.values(), *self._optimizer_step_pre_hooks.values())
        for hook in before:
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got "
                        f"{changed}."
                    )
                args, kwargs = changed
        out = step(self, *args, **kwargs)
        after = (*self._optimizer_step_post_hooks.values(), *_global_optimizer_post_hooks.values())
        for hook in after:
            hook(self, args, kwargs)
        return out

    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        if not _C._is_profiling():
            return _hooked(self, *args, **kwargs)
        with _named(f"Optimizer.step#{type(self).__name__}.step"):
            return _hooked(self, *args, **kwargs)

    wrapper.hooked = True
    return wrapper


_HOOKS = (
    "_optimizer_step_pre_hooks _optimizer_step_post_hooks _optimizer_state_dict_pre_hooks "
    "_optimizer_state_dict_post_hooks _optimizer_load_state_dict_pre_hooks "
    "_optimizer_load_state_dict_post_hooks"
).split()


class Optimizer:
    """The base class. A subclass gives the defaults of its options, and step()."""

    def __init__(self, params, defaults):
        self.defaults = defaults
        for name in _HOOKS:
            self.__dict__[name] = OrderedDict()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                "but got " + typename(params)
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if len(groups) == 0:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _patch_step_function(self):
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = _with_hooks(cls.step)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # ---- parameters --------------------------------------------------------------------------

    def add_param_group(self, param_group):
        """Adds parameters; options that the group does not name are the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = self._take_names(param_group, list(params))
        param_group["params"] = params
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is " + typename(p)
                )
            if not self.defaults.get("differentiable") and not (
                p.is_leaf or getattr(p, "retains_grad", False)
            ):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, value in self.defaults.items():
            if value is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    + name
                )
            param_group.setdefault(name, value)
        if len(params) != len(set(params)):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=3,
            )
        known = {p for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _take_names(self, param_group, params):
        """Parameters given as (name, parameter) leave their names in the group."""
        named = [isinstance(p, tuple) for p in params]
        if any(named) and not all(named):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        has_names = bool(params) and all(named)
        if has_names:
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        if self.param_groups and has_names != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"with{'' if has_names else 'out'} names to the optimizer"
            )
        return params

    def zero_grad(self, set_to_none=True):
        """Lets all gradients go, or fills them with zeros."""
        if not _C._is_profiling():
            return self._zero_grad(set_to_none)
        with _named(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
            return self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                else:
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    # ---- stepping ----------------------------------------------------------------------------

    def step(self, closure=None):
        """One step; closure computes the loss anew, and its value is returned."""
        raise NotImplementedError

    def _run_step(self, closure):
        """step() of all optimizers that step a group at a time."""
        loss = self._closure_loss(closure)
        before = _C.is_grad_enabled()
        _C._set_grad_enabled(False)
        try:
            if self._skips_scaled_step():
                return loss
            for group in self.param_groups:
                if group["differentiable"]:
                    raise NotImplementedError(
                        f"{type(self).__name__}(differentiable=True) is not implemented in "
                        "Tessera yet"
                    )
                params = [p for p in group["params"] if p.grad is not None]
                if params:
                    self._step_group(group, params, [p.grad for p in params])
        finally:
            _C._set_grad_enabled(before)
        return loss

    def _skips_scaled_step(self):
        """Divides gradients by `grad_scale`, which a GradScaler sets for a fused step.

        Returns true if `found_inf` is set and not zero: parameters then stay as they are."""
        scale = getattr(self, "grad_scale", None)
        found = getattr(self, "found_inf", None)
        if (scale is None and found is None) or "fused" not in self.defaults:
            return False
        for group in self.param_groups:
            if not group["fused"]:
                raise AssertionError("Expected grad_scale and found_inf to be None")
            for p in group["params"] if scale is not None else ():
                if p.grad is not None:
                    p.grad.div_(scale.to(p.grad.device))
        return found is not None and found.item() != 0

    def _step_group(self, group, params, grads):
        raise NotImplementedError

    def _closure_loss(self, closure):
        if closure is None:
            return None
        before = _C.is_grad_enabled()
        _C._set_grad_enabled(True)
        try:
            return closure()
        finally:
            _C._set_grad_enabled(before)

    # ---- hooks -------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook):
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ---- state -------------------------------------------------------------------------------

    def state_dict(self):
        """Options and state, with parameters by their number."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(numbers[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        made = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, made)
            if changed is not None:
                made = changed
        return made

    @staticmethod
    def _process_value_according_to_param_policy(param, value, param_id, param_groups, key=None):
        """A loaded tensor as the parameter wants it: its dtype and device, but for step counts."""
        if key == "step":
            group = next((g for g in param_groups if param_id in g["params"]), {})
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=_C.dtypes["float32"], device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def load_state_dict(self, state_dict):
        """Takes the options and state that state_dict() gave."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved_groups)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        by_number = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved_groups),
                chain.from_iterable(g["params"] for g in groups),
            )
        )

        def cast(param, value, number, key=None):
            if isinstance(value, Tensor):
                return self._process_value_according_to_param_policy(
                    param, value, number, state_dict["param_groups"], key
                )
            if isinstance(value, dict):
                return {k: cast(param, v, number, k) for k, v in value.items()}
            if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
                return type(value)(cast(param, v, number) for v in value)
            return value

        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            param = by_number.get(key) if isinstance(key, Hashable) else None
            if param is None:
                state[key] = value
            else:
                state[param] = cast(param, value, key)
        for mine, saved in zip(groups, saved_groups):
            saved["params"] = mine["params"]
            if "param_names" in mine and "param_names" not in saved:
                saved["param_names"] = mine["param_names"]
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


# ---- for optimizers -----------------------------------------------------------------------------


def new_step(param, group):
    """A count of steps, as PyTorch keeps it: a number on the CPU, or on the device if asked."""
    import tessera as torch

    if group.get("capturable") or group.get("fused"):
        return torch.zeros((), dtype=torch.float32, device=param.device)
    wide = torch.get_default_dtype() == torch.float64
    return torch.tensor(0.0, dtype=torch.float64 if wide else torch.float32)


def begin_state(state, begun):
    """Fills the state of a parameter as a whole, or not at all where memory is out."""
    _C._fuse_reserve([value for value in begun.values() if isinstance(value, _C.Tensor)])
    state.update(begun)


def zeros_like(param):
    return _C.ops["zeros_like"](param)


def check(value, name, low=0.0, high=None):
    """Refuses an option out of range, as PyTorch words it."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        value = value.item()
    if not low <= value or (high is not None and not value < high):
        raise ValueError(f"Invalid {name}: {value}")


def check_betas(betas):
    for i, beta in enumerate(betas):
        check(beta, f"beta parameter at index {i}", 0.0, 1.0)


def check_ways(foreach, fused, differentiable):
    """Which of PyTorch's ways to step were asked for; all are one here."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def number(value):
    """An option that may be a tensor of one number."""
    return float(value)


# ---- for optimizers written after PyTorch's own -------------------------------------------------

_RequiredParameter = _Required


def _use_grad_for_differentiable(step):
    """A step without a graph, unless the optimizer is differentiable."""

    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        before = _C.is_grad_enabled()
        _C._set_grad_enabled(bool(self.defaults.get("differentiable")))
        try:
            return step(self, *args, **kwargs)
        finally:
            _C._set_grad_enabled(before)

    return wrapper


def _get_value(x):
    return x.item() if isinstance(x, Tensor) else x


def _dispatch_sqrt(x):
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """Neither: operators on lists are the optimizers' own."""
    return False, False


def _get_capturable_supported_devices(supports_xla=True):
    return ["cuda"]
