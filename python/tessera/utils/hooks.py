"""Handles of registered hooks, and the hooks around a module's backward pass."""

import itertools
import weakref
from collections import OrderedDict

_ids = itertools.count()


class RemovableHandle:
    """Takes a hook out of the dictionaries it was put in; a context manager does so at its end."""

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = next(_ids)
        extras = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or []
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extras)

    def remove(self):
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state):
        def refer(hooks):
            # A dictionary that is gone becomes a fresh one, which goes at once.
            return weakref.ref(OrderedDict() if hooks is None else hooks)

        self.hooks_dict_ref = refer(state[0])
        self.id = state[1]
        self.extra_dict_ref = tuple(refer(d) for d in (state[2] if len(state) > 2 else ()))
        global _ids
        _ids = itertools.count(max(next(_ids), self.id + 1))

    def __enter__(self):
        return self

    def __exit__(self, type, value, traceback):
        self.remove()


def warn_if_has_hooks(tensor):
    """Serialisation keeps no hooks: says so, unless a hook is marked as known to be lost."""
    hooks = getattr(tensor, "_backward_hooks", None)
    for hook in (hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            import warnings

            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is "
                "expected, you can decorate the function with @torch.utils.hooks."
                "unserializable_hook to suppress this warning"
            )


def unserializable_hook(f):
    """Marks a hook of which it is known that serialisation drops it."""
    f.__torch_unserializable__ = True
    return f


def _boundary():
    """The autograd function that lets tensors through and hands their gradients to a callback."""
    import tessera as torch

    class Boundary(torch.autograd.Function):
        @staticmethod
        def forward(ctx, callback, *tensors):
            ctx.set_materialize_grads(False)
            ctx.callback = callback
            passed = tuple(t.view_as(t) for t in tensors)
            ctx.mark_non_differentiable(
                *(p for p, t in zip(passed, tensors) if not t.requires_grad)
            )
            return passed

        @staticmethod
        def backward(ctx, *grads):
            return (None, *ctx.callback(grads))

    return Boundary


class BackwardHook:
    """The full backward hooks of one call of a module.

    Inputs and outputs pass through a boundary each. The gradients that reach the outputs' boundary
    are the module's grad_output, those that leave the inputs' boundary its grad_input.
    """

    _Boundary = None

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.input_places = None  # where tensors stand among the inputs
        self.n_inputs = -1
        self.output_places = None
        self.n_outputs = -1

    def setup_input_hook(self, args):
        self.n_inputs = len(args)
        places = [i for i, a in enumerate(args) if _is_tensor(a)]
        if not _grad_enabled() or not any(args[i].requires_grad for i in places):
            return args
        self.input_places = places
        passed = self._through([args[i] for i in places], self._on_input_grads)
        args = list(args)
        for i, tensor in zip(places, passed):
            args[i] = tensor
        return tuple(args)

    def setup_output_hook(self, result):
        single = not isinstance(result, tuple)
        if single:
            result = (result,)
        places = [i for i, a in enumerate(result) if _is_tensor(a)]
        if not _grad_enabled() or not any(result[i].requires_grad for i in places):
            return result[0] if single else result
        self.n_outputs, self.output_places = len(result), places
        passed = self._through([result[i] for i in places], self._on_output_grads)
        out = list(result)
        for i, tensor in zip(places, passed):
            out[i] = tensor
        return out[0] if single else type(result)(out) if type(result) is tuple else tuple(out)

    @classmethod
    def _through(cls, tensors, callback):
        if cls._Boundary is None:
            cls._Boundary = _boundary()
        return cls._Boundary.apply(callback, *tensors)

    @staticmethod
    def _spread(grads, places, n):
        full = [None] * n
        for i, g in zip(places, grads):
            full[i] = g
        return tuple(full)

    @staticmethod
    def _checked(grads, full, places):
        """Returns the gradients at `places`, which have to be like those that the hooks saw."""
        from .. import _C

        for grad, i in zip(grads, places):
            if full[i] is not None:
                _C._check_hook_result(grad, full[i], "hook")
        return tuple(full[i] for i in places)

    def _on_output_grads(self, grads):
        full = self._spread(grads, self.output_places, self.n_outputs)
        for hook in self.user_pre_hooks:
            result = hook(self.module, full)
            if result is None:
                continue
            result = result if isinstance(result, tuple) else (result,)
            if len(result) != self.n_outputs:
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(result)}, but expected {self.n_outputs}"
                )
            full = result
        self.grad_outputs = full
        if self.input_places is None:
            # No input wants a gradient: this is the only occasion.
            for hook in self.user_hooks:
                result = hook(self.module, (None,) * self.n_inputs, self.grad_outputs)
                if result is not None and not (
                    isinstance(result, tuple) and all(g is None for g in result)
                ):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient "
                        "should always return None or None for all gradients."
                    )
            self.grad_outputs = None
        return self._checked(grads, full, self.output_places)

    def _on_input_grads(self, grads):
        full = self._spread(grads, self.input_places, self.n_inputs)
        if self.grad_outputs is None:
            raise RuntimeError(
                "Module backward hook for grad_input is called before the grad_output one: the "
                "gradient reaches the module's input without passing through its output. The "
                "output must depend on the input, and the loss on the output."
            )
        for hook in self.user_hooks:
            result = hook(self.module, full, self.grad_outputs)
            if result is None:
                continue
            result = result if isinstance(result, tuple) else (result,)
            if len(result) != self.n_inputs:
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(result)}, but expected {self.n_inputs}"
                )
            full = result
        self.grad_outputs = None
        return self._checked(grads, full, self.input_places)


def _is_tensor(value):
    from .. import _C

    return isinstance(value, _C.Tensor)


def _grad_enabled():
    from .. import _C

    return _C.is_grad_enabled()
