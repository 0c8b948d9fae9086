"""Scaling a loss, so that small gradients of float16 do not become zero."""

import warnings
from collections import defaultdict
from enum import Enum

import tessera as torch

from .. import _C


class OptState(Enum):
    """What was done to an optimizer's gradients since the last update()."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class _Numbers:
    """A number on each device that asks for it."""

    def __init__(self, number):
        self._number = number
        self._on = {}

    def get(self, device):
        if device not in self._on:
            self._on[device] = self._number.to(device, copy=True)
        return self._on[device]


class GradScaler:
    """Scales losses, unscales gradients, skips steps whose gradients are not finite."""

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled and not torch.cuda.is_available():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling."
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale = None  # a tensor on the device of the first loss
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker = None
        self._forget_optimizers()

    def _forget_optimizers(self):
        self._per_optimizer_states = defaultdict(
            lambda: {"stage": OptState.READY, "found_inf_per_device": {}}
        )

    def _begin(self, device):
        self._scale = torch.full((), self._init_scale, dtype=torch.float32, device=device)
        self._growth_tracker = torch.full(
            (), self._init_growth_tracker, dtype=torch.int32, device=device
        )

    def _begun(self, caller):
        if self._scale is None:
            raise AssertionError(
                f"Attempted {caller} but _scale is None: scaler.scale(loss) comes first."
            )
        return self._scale

    def scale(self, outputs):
        """Losses times the scale: one tensor, or an iterable of them."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, torch.Tensor):
            if self._scale is None:
                self._begin(outputs.device)
            return outputs * self._scale.to(outputs.device)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        try:
            return map(self.scale, iter(outputs))
        except TypeError:
            raise ValueError("outputs must be a Tensor or an iterable of Tensors") from None

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        inverse, found = _Numbers(inv_scale), _Numbers(found_inf)
        by_device = defaultdict(list)
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not allow_fp16 and p.grad.dtype == torch.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                by_device[p.grad.device].append(p.grad)
        with torch.no_grad():
            for device, grads in by_device.items():
                _C.ops["_amp_foreach_non_finite_check_and_unscale_"](
                    grads, found.get(device), inverse.get(device)
                )
        return found._on

    def unscale_(self, optimizer):
        """Divides the gradients of an optimizer's parameters by the scale; before clipping, say."""
        if not self._enabled:
            return
        self._begun("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # In float64: the reciprocal of a large scale loses nothing.
        inverse = self._scale.double().reciprocal().float()
        found = torch.zeros((), dtype=torch.float32, device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step(), unless a gradient is not finite; unscales them first where needed.

        Tells whether it stepped: False where it did not, what optimizer.step() returned or True
        where it did.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._begun("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._scaled_step(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"]
        if not found:
            count = sum(len(group["params"]) for group in optimizer.param_groups)
            raise AssertionError(
                "No inf checks were recorded for this optimizer. None of its "
                f"{count} parameters has a gradient: was scaler.scale(loss).backward() called, "
                "with a loss that depends on them?"
            )
        if any(t.item() for t in found.values()):
            result = False
            optimizer._opt_called = True  # a scheduler's step after this one is in order
        else:
            result = optimizer.step(*args, **kwargs)
            result = True if result is None else result
        state["stage"] = OptState.STEPPED
        return result

    def _scaled_step(self, optimizer, state, args, kwargs):
        """A step that divides by the scale and skips infinite gradients itself: by the attributes
        grad_scale and found_inf, or, if it takes one, by the argument grad_scaler."""
        import inspect
        import warnings

        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed "
                "optimizer. In the near future GradScaler registers `grad_scale: Tensor` and "
                "`found_inf: Tensor` to the passed optimizer and let the optimizer use them "
                "directly.",
                FutureWarning,
                stacklevel=3,
            )
            result = optimizer.step(*args, **kwargs, grad_scaler=self)
            state["stage"] = OptState.STEPPED
            return result
        scale = self._get_scale_async()
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
            optimizer.grad_scale = scale * getattr(optimizer, "grad_scale", 1)
        else:
            optimizer.grad_scale = getattr(optimizer, "grad_scale", None)
        found = [t.to(scale.device) for t in state["found_inf_per_device"].values()]
        optimizer.found_inf = sum(found)
        result = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        del optimizer.grad_scale
        del optimizer.found_inf
        return result

    def update(self, new_scale=None):
        """The scale for the next iteration."""
        if not self._enabled:
            return
        scale = self._begun("update")
        if new_scale is not None:
            if isinstance(new_scale, torch.Tensor):
                if new_scale.numel() != 1 or new_scale.requires_grad:
                    raise AssertionError(
                        "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                        "torch.FloatTensor with requires_grad=False."
                    )
                scale.copy_(new_scale.reshape(()))
            else:
                scale.fill_(new_scale)
        else:
            found = [
                t.to(scale.device)
                for state in self._per_optimizer_states.values()
                for t in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            with torch.no_grad():
                _C.ops["_amp_update_scale_"](
                    scale,
                    self._growth_tracker,
                    sum(found[1:], found[0]),
                    self._growth_factor,
                    self._backoff_factor,
                    self._growth_interval,
                )
        self._forget_optimizers()

    def get_scale(self):
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_scale_async(self):
        return self._scale

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _check_inf_per_device(self, optimizer):
        """Looks at the gradients without changing them."""
        device = self._begun("_check_inf_per_device").device
        one = torch.ones((), dtype=torch.float32, device=device)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(
            optimizer, one, torch.zeros_like(one), True
        )
        return state["found_inf_per_device"]

    def get_growth_factor(self):
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else tracker.item()

    def is_enabled(self):
        return self._enabled

    def state_dict(self):
        """What goes on where it was left: load_state_dict() of another takes it."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if len(self._per_optimizer_states) != 0:
                raise AssertionError(
                    "A GradScaler instance may only be pickled after scaler.update() and before "
                    "the next step"
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
            del state["_per_optimizer_states"]
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        if self._enabled:
            self._forget_optimizers()
