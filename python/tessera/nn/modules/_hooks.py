"""Hooks of modules: registering them, and a call that runs them."""

import functools
from collections import OrderedDict

from ... import _C
from ...utils.hooks import BackwardHook, RemovableHandle

# Hooks of every module, by kind.
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_is_full_backward_hook = None
_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()


def _register(hooks, hook, prepend=False, marks=()):
    """Puts the hook in, and its id into each dictionary of marks that is wanted."""
    handle = RemovableHandle(hooks, extra_dict=[d for d, _ in marks])
    hooks[handle.id] = hook
    for d, wanted in marks:
        if wanted:
            d[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook):
    """Runs hook(module, name, buffer) at every register_buffer; it may return a replacement."""
    return _register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Runs hook(module, name, submodule) at every register_module."""
    return _register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Runs hook(module, name, param) at every register_parameter."""
    return _register(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Runs hook(module, args) before every module's forward."""
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Runs hook(module, args, output) after every module's forward."""
    marks = (
        (_global_forward_hooks_with_kwargs, with_kwargs),
        (_global_forward_hooks_always_called, always_call),
    )
    return _register(_global_forward_hooks, hook, marks=marks)


def _choose_global_kind(full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook):
    """The old kind, of whatever made the module's output. Prefer the full kind."""
    _choose_global_kind(False)
    return _register(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Runs hook(module, grad_output) before every module's backward."""
    return _register(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Runs hook(module, grad_input, grad_output) at every module's backward."""
    _choose_global_kind(True)
    return _register(_global_backward_hooks, hook)


def _tensors_in(result):
    if isinstance(result, dict):
        result = tuple(result.values())
    if isinstance(result, (tuple, list)):
        return [t for item in result for t in _tensors_in(item)]
    return [result] if isinstance(result, _C.Tensor) else []


class HooksMixin:
    """The part of nn.Module that concerns hooks."""

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Runs hook(module, args) before forward; what it returns replaces the arguments."""
        marks = ((self._forward_pre_hooks_with_kwargs, with_kwargs),)
        return _register(self._forward_pre_hooks, hook, prepend, marks)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Runs hook(module, args, output) after forward; what it returns replaces the output."""
        marks = (
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
        )
        return _register(self._forward_hooks, hook, prepend, marks)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Runs hook(module, grad_output); what it returns replaces grad_output."""
        return _register(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook):
        """The old kind, of whatever made the module's output. Prefer the full kind."""
        self._choose_kind(False)
        return _register(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook, prepend=False):
        """Runs hook(module, grad_input, grad_output); what it returns replaces grad_input."""
        self._choose_kind(True)
        return _register(self._backward_hooks, hook, prepend)

    def _choose_kind(self, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

    def _call_with_hooks(self, args, kwargs):
        # Ids of hooks that ran: when something raises, those marked always_call still run, once.
        ran = set()
        try:
            return self._call_in_order(args, kwargs, ran)
        except Exception:
            self._run_always_called(args, kwargs, ran)
            raise

    def _call_in_order(self, args, kwargs, ran):
        args, kwargs = self._run_pre_hooks(args, kwargs)
        full, old = self._split_backward_hooks()
        pre = [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
        boundary = BackwardHook(self, full, pre) if full or pre else None
        if boundary:
            args = boundary.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        result = self._run_forward_hooks(args, kwargs, result, ran)
        if boundary:
            result = boundary.setup_output_hook(result)
        if old:
            self._attach_old_hooks(old, args, result)
        return result

    def _run_pre_hooks(self, args, kwargs):
        for hooks in (_global_forward_pre_hooks, self._forward_pre_hooks):
            for key, hook in [*hooks.items()]:
                if key in self._forward_pre_hooks_with_kwargs:
                    changed = hook(self, args, kwargs)
                    if changed is not None:
                        if not isinstance(changed, tuple) or len(changed) != 2:
                            raise RuntimeError(
                                "forward pre-hook must return None or a tuple of "
                                f"(new_args, new_kwargs), but got {changed}."
                            )
                        args, kwargs = changed
                else:
                    changed = hook(self, args)
                    if changed is not None:
                        args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _each_forward_hook(self):
        """(id, hook, wants kwargs, is always called) of all, the global ones first."""
        for key, hook in [*_global_forward_hooks.items()]:
            yield (
                key,
                hook,
                key in _global_forward_hooks_with_kwargs,
                key in _global_forward_hooks_always_called,
            )
        for key, hook in [*self._forward_hooks.items()]:
            yield (
                key,
                hook,
                key in self._forward_hooks_with_kwargs,
                key in self._forward_hooks_always_called,
            )

    def _run_forward_hooks(self, args, kwargs, result, ran):
        for key, hook, with_kwargs, _ in self._each_forward_hook():
            ran.add(key)
            changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if changed is not None:
                result = changed
        return result

    def _run_always_called(self, args, kwargs, ran):
        result = None
        for key, hook, with_kwargs, always in self._each_forward_hook():
            if not always or key in ran:
                continue
            try:
                changed = (
                    hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
                )
                if changed is not None:
                    result = changed
            except Exception as error:
                import warnings

                kind = "global module" if key in _global_forward_hooks else "module"
                warnings.warn(
                    f"{kind} forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error}"
                )

    def _split_backward_hooks(self):
        full, old = [], []
        of_all = full if _global_is_full_backward_hook else old
        of_all.extend(_global_backward_hooks.values())
        own = full if self._is_full_backward_hook else old
        own.extend(self._backward_hooks.values())
        return full, old

    def _attach_old_hooks(self, hooks, args, result):
        tensors = _tensors_in(result)
        node = tensors[0].grad_fn if tensors else None
        if node is None:
            return
        for hook in hooks:
            node.register_hook(functools.partial(hook, self))
        if len(tensors) > 1 or not isinstance(result, _C.Tensor):
            import warnings

            warnings.warn(
                "Using a non-full backward hook when the forward contains multiple autograd Nodes "
                "is deprecated and will be removed in future versions. This hook will be missing "
                "some grad_input. Please use register_full_backward_hook to get the documented "
                "behavior.",
                FutureWarning,
                stacklevel=2,
            )
