"""nn.Module: a plain Python class that keeps parameters, buffers and children by name."""

from collections import OrderedDict

from ... import _C
from ..._functions import typename
from ..parameter import Buffer, Parameter
from . import _hooks
from ._convert import ConvertMixin
from ._hooks import (
    HooksMixin,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._state import _EXTRA_STATE_KEY_SUFFIX, StateMixin, _IncompatibleKeys
from ._walk import WalkMixin

__all__ = [
    "Module",
    "_EXTRA_STATE_KEY_SUFFIX",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Tensor = _C.Tensor
# Dictionaries of hooks that every module has.
_HOOKS = (
    "_backward_pre_hooks _backward_hooks _forward_hooks _forward_hooks_with_kwargs "
    "_forward_hooks_always_called _forward_pre_hooks _forward_pre_hooks_with_kwargs "
    "_state_dict_hooks _state_dict_pre_hooks _load_state_dict_pre_hooks "
    "_load_state_dict_post_hooks"
).split()


def _addindent(text, spaces):
    first, *rest = text.split("\n")
    return "\n".join([first, *(spaces * " " + line for line in rest)])


def _forward_unimplemented(self, *input):
    """What a module computes; every subclass has its own."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module(HooksMixin, StateMixin, WalkMixin, ConvertMixin):
    """The base class of all networks. Assigning a Parameter, Buffer or Module registers it."""

    dump_patches = False
    _version = 1
    call_super_init = False
    _compiled_call_impl = None

    def __init__(self, *args, **kwargs):
        if self.call_super_init is False and (args or kwargs):
            name = type(self).__name__
            if kwargs:
                raise TypeError(
                    f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            raise TypeError(
                f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        object.__setattr__(self, "training", True)
        own = self.__dict__
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_is_full_backward_hook"] = None
        own["_modules"] = {}
        for name in _HOOKS:
            own[name] = OrderedDict()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward = _forward_unimplemented

    # ---- calling -----------------------------------------------------------------------------

    def __call__(self, *args, **kwargs):
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
            or _global_backward_hooks
            or _global_backward_pre_hooks
        ):
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    _call_impl = __call__
    _wrapped_call_impl = __call__

    def compile(self, *args, **kwargs):
        """Takes torch.compile's arguments. There is nothing to do: operators are fused anyway."""

    # ---- registering -------------------------------------------------------------------------

    def _check_name(self, kind, name, where):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in where:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    def register_buffer(self, name, tensor, persistent=True):
        """A tensor that moves with the module; with persistent, part of its state_dict."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        for hook in _global_buffer_registration_hooks.values():
            changed = hook(self, name, tensor)
            if changed is not None:
                tensor = changed
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """A parameter by name, or None as its place."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another Tensor, "
                    "compute the value in the forward() method."
                )
            for hook in _global_parameter_registration_hooks.values():
                changed = hook(self, name, param)
                if changed is not None:
                    param = changed
        self._parameters[name] = param

    def add_module(self, name, module):
        """A child by name, or None as its place."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        for hook in _global_module_registration_hooks.values():
            changed = hook(self, name, module)
            if changed is not None:
                module = changed
        self._modules[name] = module

    def register_module(self, name, module):
        self.add_module(name, module)

    # ---- attributes --------------------------------------------------------------------------

    def __getattr__(self, name):
        own = self.__dict__
        found = own.get("_parameters")
        if found is not None and name in found:
            return found[name]
        found = own.get("_buffers")
        if found is not None and name in found:
            return found[name]
        found = own.get("_modules")
        if found is not None and name in found:
            return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        own = self.__dict__
        params = own.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            for hook in _global_module_registration_hooks.values():
                changed = hook(self, name, value)
                if changed is not None:
                    value = changed
            own["_modules"][name] = value
        elif name in own.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            own["_modules"][name] = value
        elif name in own.get("_buffers", ()) or isinstance(value, Buffer):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_buffer(self, name, value):
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            self._forget(name, "_buffers")
            self.register_buffer(name, value, getattr(value, "persistent", True))
            return
        for hook in _global_buffer_registration_hooks.values():
            changed = hook(self, name, value)
            if changed is not None:
                value = changed
        self._buffers[name] = value

    def _forget(self, name, kept):
        """Takes a name out of everything but what it is about to go into."""
        own = self.__dict__
        own.pop(name, None)
        for where in ("_parameters", "_buffers", "_modules"):
            if where != kept:
                own[where].pop(name, None)
        if kept != "_buffers":
            own["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self):
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules]
        return sorted(n for n in (*names, *self._buffers) if not n[0].isdigit())

    def __setstate__(self, state):
        self.__dict__.update(state)
        # What was pickled by an older version lacks the newer dictionaries.
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # ---- modes -------------------------------------------------------------------------------

    def train(self, mode=True):
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        for p in self.parameters():
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

    # ---- printing ----------------------------------------------------------------------------

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What a module says of itself between its parentheses."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [
            f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()
        ]
        if not child_lines and len(extra_lines) <= 1:
            return f"{self._get_name()}({''.join(extra_lines)})"
        return self._get_name() + "(\n  " + "\n  ".join(extra_lines + child_lines) + "\n)"

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        for name in ("_parameters", "_buffers", "_modules"):
            replica.__dict__[name] = self.__dict__[name].copy()
        replica.__dict__["_parameters"] = {}
        replica._is_replica = True
        return replica


def __getattr__(name):
    # Written by the functions that register: read where they stand.
    if name == "_global_is_full_backward_hook":
        return _hooks._global_is_full_backward_hook
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
