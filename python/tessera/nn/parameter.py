"""nn.Parameter: a tensor that a module trains."""

from .. import _C

Tensor = _C.Tensor


class Parameter(Tensor):
    """A leaf tensor that wants a gradient; operators on it give plain tensors."""

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = Tensor()
        if type(data) is Tensor or type(data) is Parameter:
            return _C._make_subclass(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a Tensor, not {type(data).__name__}")
        # A subclass of Tensor keeps its class and only takes the gradient flag.
        made = data.detach().requires_grad_(requires_grad)
        if type(made) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires "
                "that detach() returns an instance of the same type, but return type "
                f"{type(made).__name__} was found instead."
            )
        made._is_param = True
        return made

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    # Results of operators are plain tensors, at no cost.
    __torch_function__ = _C._disabled_torch_function_impl


_C._set_parameter_type(Parameter)
