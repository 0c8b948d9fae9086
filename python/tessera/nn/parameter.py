"""nn.Parameter and nn.Buffer: tensors that modules register; and those whose shape comes later."""

from .. import _C

Tensor = _C.Tensor


class _ParameterMeta(type(Tensor)):
    """A tensor subclass marked as a parameter counts as one."""

    def __instancecheck__(self, instance):
        return super().__instancecheck__(instance) or (
            self is Parameter
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf tensor that wants a gradient; operators on it give plain tensors."""

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = Tensor()
        if type(data) is Tensor or type(data) is Parameter:
            return _C._make_subclass(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a Tensor, not {type(data).__name__}")
        return _marked(data, requires_grad, "_is_param", "Parameter")

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        made = memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return made

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        from collections import OrderedDict

        from .. import _utils  # pickles name the functions where PyTorch has them

        state = dict(self.__dict__)
        parts = (self.data, self.requires_grad, OrderedDict())
        if state:
            return (_utils._rebuild_parameter_with_state, (*parts, state))
        return (_utils._rebuild_parameter, parts)

    # Results of operators are plain tensors, at no cost.
    __torch_function__ = _C._disabled_torch_function_impl


def _marked(data, requires_grad, mark, kind):
    """A subclass of Tensor keeps its class, and only takes the gradient flag and a mark."""
    made = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise RuntimeError(
            f"Creating a {kind} from an instance of type {type(data).__name__} requires "
            "that detach() returns an instance of the same type, but return type "
            f"{type(made).__name__} was found instead."
        )
    setattr(made, mark, True)
    return made


def _rebuild_parameter(data, requires_grad, backward_hooks):
    made = Parameter(data, requires_grad)
    if backward_hooks:
        made._backward_hooks = backward_hooks
    return made


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    made = _rebuild_parameter(data, requires_grad, backward_hooks)
    for key, value in state.items():
        setattr(made, key, value)
    return made


class _BufferMeta(type(Tensor)):
    """A buffer is any tensor with the mark: the class only makes it."""

    def __instancecheck__(self, instance):
        if self is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module registers as a buffer when it is assigned to an attribute."""

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = _C.ops["empty"]((0,))
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    __torch_function__ = _C._disabled_torch_function_impl


_NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
    "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
    "Call `forward` to initialize the parameters before accessing their attributes."
)


class UninitializedTensorMixin:
    """A tensor without a shape: it may be moved, and materialized."""

    # What a program may do with it before it has a shape.
    _allowed_attributes = (
        "is_cuda cpu cuda float double half bfloat16 char short int long to device dtype data "
        "grad is_leaf requires_grad requires_grad_ copy_ type layout is_floating_point is_complex"
    ).split()

    def materialize(self, shape, device=None, dtype=None):
        """Gives it memory of this shape; it becomes an ordinary parameter or buffer."""
        data = self.data
        self.data = _C.ops["empty"](shape, device=device or data.device, dtype=dtype or data.dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(_NO_SHAPE)

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return (type(self), (self.requires_grad,))

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in cls._allowed_attributes or name in ("__get__", "__set__", "__delete__"):
            with _C.DisableTorchFunctionSubclass():
                result = func(*args, **(kwargs or {}))
            # A buffer that is moved stays without shape; a parameter takes the new data itself.
            if type(result) is Tensor and not issubclass(cls, Parameter) and name != "data":
                return result.as_subclass(cls)
            return result
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you "
            "are using a `LazyModule` or explicitly manipulating "
            "`torch.nn.parameter.UninitializedParameter` objects. When using LazyModules Call "
            "`forward` with a dummy batch to initialize the parameters before calling torch "
            "functions"
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is known at the first call of its module."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        data = _C.ops["empty"]((0,), device=device, dtype=dtype)
        return _C._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is known at the first call of its module."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        data = _C.ops["empty"]((0,), device=device, dtype=dtype)
        made = _C._make_subclass(cls, data, requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


def is_lazy(param):
    """Is its shape not known yet?"""
    return isinstance(param, UninitializedTensorMixin)


_C._set_parameter_type(Parameter)
