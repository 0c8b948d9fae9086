"""Functions with a backward of their own."""

from .. import _C
from .._grad_mode import no_grad

Tensor = _C.Tensor


class FunctionCtx:
    """What forward leaves for backward."""

    def save_for_backward(self, *tensors):
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError("save_for_forward takes tensors and None only")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args):
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        self._materialize_grads = bool(value)

    to_save = ()
    dirty_tensors = ()
    non_differentiable = ()
    _materialize_grads = True
    _node = None

    @property
    def saved_tensors(self):
        return tuple(self.to_save) if self._node is None else _C._saved_of(self._node)

    @property
    def saved_variables(self):
        return self.saved_tensors

    def _run_backward(self, grads, node):
        # The node owns this context: it is known here for as long as backward runs.
        self._node = node
        try:
            return self._function._backward_of()(self, *grads)
        finally:
            self._node = None


def once_differentiable(function):
    """A backward that is not differentiable itself."""
    import functools

    @functools.wraps(function)
    def wrapper(ctx, *args):
        with no_grad():
            outputs = function(ctx, *args)
        if not _C.is_grad_enabled():
            return outputs
        if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        several = isinstance(outputs, tuple)
        outputs = outputs if several else (outputs,)

        def refuse(t):
            if t is None:
                return None
            t = t.detach().requires_grad_(True)
            return _Refuse.apply(t)

        outputs = tuple(refuse(t) for t in outputs)
        return outputs if several else outputs[0]

    return wrapper


class FunctionMeta(type):
    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        cls._ctx_type = type(name + "Backward", (FunctionCtx,), {"_function": cls})


class Function(metaclass=FunctionMeta):
    """A pair of forward and backward that the graph takes as one operator."""

    generate_vmap_rule = False

    def __init__(self, *args, **kwargs):
        raise RuntimeError(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch."
        )

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @classmethod
    def _backward_of(cls):
        overridden = cls.backward is not Function.backward
        return cls.backward if overridden or cls.vjp is Function.vjp else cls.vjp

    @classmethod
    def apply(cls, *args, **kwargs):
        ctx = cls._ctx_type()
        separate = cls.setup_context is not Function.setup_context
        if separate and kwargs:
            args, kwargs = _bind(cls.forward, args, kwargs), {}
        wanted = _C.is_grad_enabled()
        ctx.needs_input_grad = tuple(
            wanted and isinstance(a, Tensor) and a.requires_grad for a in args
        )
        with no_grad():
            if separate:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        several = isinstance(output, (tuple, list))
        results = tuple(output) if several else (output,)
        given = {id(a) for a in args}
        dirty = {id(d) for d in ctx.dirty_tensors}
        results = tuple(_own(r, given, dirty) for r in results)
        if any(ctx.needs_input_grad):
            _C._attach_function(
                ctx,
                cls.__name__ + "Backward",
                args,
                results,
                tuple(ctx.dirty_tensors),
                tuple(ctx.non_differentiable),
                tuple(ctx.to_save),
            )
            ctx.to_save = ()  # the node keeps them now
        return results if several else results[0]


def _own(result, given, dirty):
    """Returns an input that forward returns unchanged as a tensor of its own; sets of ids."""
    if isinstance(result, Tensor) and id(result) in given and id(result) not in dirty:
        return result.detach()
    return result


def _bind(function, args, kwargs):
    import inspect

    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return tuple(bound.args)


class _Refuse(Function):
    @staticmethod
    def forward(ctx, t):
        return t.clone()

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


class InplaceFunction(Function):
    """Kept for old programs."""


class NestedIOFunction(Function):
    """Kept for old programs."""
