"""Products with Jacobians and Hessians, and these themselves, of a function at a point."""

from .. import _C
from .._grad_mode import enable_grad

Tensor = _C.Tensor
_DEPENDENCE = "This is not allowed in strict mode"


def _as_tuple(value, role, function):
    """(was it a tuple, the tensors as a tuple)"""
    is_tuple = isinstance(value, tuple)
    tensors = value if is_tuple else (value,)
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            what = (
                f"The {role} given to {function}"
                if role != "outputs"
                else f"The outputs of the user-provided function given to {function}"
            )
            where = f"the value at index {i}" if is_tuple else f"the given {role}"
            raise TypeError(
                f"{what} must be either a Tensor or a tuple of Tensors but {where} has type "
                f"{type(x)}."
            )
    return is_tuple, tensors


def _as_given(tensors, was_tuple):
    return tensors if was_tuple else tensors[0]


def _fresh(inputs, create_graph):
    """What the function is called with: connected to the inputs only where that is asked for."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_()
        for x in inputs
    )


def _released(value, create_graph):
    if isinstance(value, tuple):
        return tuple(_released(v, create_graph) for v in value)
    return value if create_graph else value.detach()


def _zeros_like(x):
    return _C.ops["zeros_like"](x)


def _check_requires_grad(tensors, kind, strict):
    """In strict mode nothing may be independent of the inputs."""
    if not strict:
        return
    for i, x in enumerate(tensors):
        if x is None or x.requires_grad:
            continue
        if kind == "outputs":
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs "
                "must be computed in a differentiable manner from the input when running in strict "
                "mode."
            )
        what = {
            "jacobian": "The jacobian of the user-provided function",
            "hessian": "The hessian of the user-provided function",
            "grad_input": "The gradient with respect to input",
        }[kind]
        if kind == "grad_input":
            raise RuntimeError(
                f"{what} {i} is independent of the inputs of the user-provided function. "
                f"{_DEPENDENCE}."
            )
        raise RuntimeError(
            f"{what} with respect to input {i} is independent of the input. {_DEPENDENCE} when "
            "create_graph=True."
        )


def _gradients(outputs, inputs, vectors, create_graph=False, retain_graph=True):
    """The gradients, None where an input does not matter."""
    pairs = [(y, v) for y, v in zip(outputs, vectors) if y is not None and y.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return _C._grad(
        tuple(y for y, _ in pairs),
        tuple(inputs),
        tuple(v for _, v in pairs),
        retain_graph,
        create_graph,
        True,
    )


def _filled(found, like, strict, stage, create_graph=False):
    """Zeros where there is no gradient, or an error in strict mode."""
    results = []
    for i, (g, x) in enumerate(zip(found, like)):
        if g is None and strict:
            raise RuntimeError(
                {
                    "back": "The output of the user-provided function is independent of input "
                    f"{i}. {_DEPENDENCE}.",
                    "back_trick": "The gradient with respect to the input is independent of entry "
                    f"{i} in the grad_outputs when using the double backward trick to compute "
                    f"forward mode gradients. {_DEPENDENCE}.",
                    "double_back": "The jacobian of the user-provided function is independent of "
                    f"input {i}. {_DEPENDENCE}.",
                    "double_back_trick": "The hessian of the user-provided function is independent "
                    f"of entry {i} in the grad_jacobian. {_DEPENDENCE}.",
                }[stage]
            )
        if g is not None and strict and create_graph and not g.requires_grad:
            order = "hessian" if stage.startswith("double") else "jacobian"
            raise RuntimeError(
                f"The {order} of the user-provided function is independent of input {i}. "
                f"{_DEPENDENCE} when create_graph=True."
            )
        results.append(_zeros_like(x) if g is None else g)
    return tuple(results)


def _vectors(v, like, like_tuple, function, what):
    """The vector of a product, checked against what it is to be multiplied with."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {what} a single Tensor with a single "
                "element."
            )
        return (_C.ops["ones_like"](like[0].detach()),)
    _, v = _as_tuple(v, "v", function)
    if len(v) != len(like):
        if like_tuple:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(v, like)):
        if a.shape != b.shape:
            where = f"Entry {i} in v" if like_tuple else "v"
            raise RuntimeError(f"{where} has invalid size: should be {b.shape} but got {a.shape}.")
    return v


def _call(func, inputs, function, strict):
    was_tuple, outputs = _as_tuple(func(*inputs), "outputs", function)
    _check_requires_grad(outputs, "outputs", strict)
    return was_tuple, outputs


def _one_number(was_tuple, outputs, function):
    if was_tuple or not isinstance(outputs[0], Tensor):
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {function} should contain a single "
            "element"
        )


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v times the Jacobian)"""
    with enable_grad():
        is_tuple, given = _as_tuple(inputs, "inputs", "vjp")
        xs = _fresh(given, create_graph)
        outs_tuple, outs = _call(func, xs, "vjp", strict)
        v = _vectors(v, outs, outs_tuple, "vjp", "user-provided function returns")
        found = _gradients(outs, xs, v, create_graph)
        found = _filled(found, xs, strict, "back", create_graph)
    return (
        _released(_as_given(outs, outs_tuple), create_graph),
        _released(_as_given(found, is_tuple), create_graph),
    )


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the Jacobian times v), by the gradient of a gradient"""
    with enable_grad():
        is_tuple, given = _as_tuple(inputs, "inputs", "jvp")
        xs = _fresh(given, create_graph)
        v = _vectors(v, xs, is_tuple, "jvp", "input to the user-provided function is")
        outs_tuple, outs = _call(func, xs, "jvp", strict)
        dummies = tuple(_zeros_like(y.detach()).requires_grad_() for y in outs)
        back = _gradients(outs, xs, dummies, create_graph=True)
        _check_requires_grad(back, "grad_input", strict)
        found = _gradients(back, dummies, v, create_graph)
        found = _filled(found, outs, strict, "back_trick", create_graph)
    return (
        _released(_as_given(outs, outs_tuple), create_graph),
        _released(_as_given(found, outs_tuple), create_graph),
    )


def _jacobian_of(y, i, xs, create_graph, strict):
    """The rows of the Jacobian of output i, an entry for each input."""
    rows = [[] for _ in xs]
    for k in range(y.numel()):
        unit = _zeros_like(y.detach()).reshape(-1)
        unit[k] = 1
        found = _gradients((y,), xs, (unit.view(y.shape),), create_graph)
        for j, (g, x) in enumerate(zip(found, xs)):
            if g is None and strict:
                raise RuntimeError(
                    f"Output {i} of the user-provided function is independent of input {j}. "
                    f"{_DEPENDENCE}."
                )
            if g is not None and strict and create_graph and not g.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {j}. "
                    f"{_DEPENDENCE} when create_graph=True."
                )
            rows[j].append(_zeros_like(x) if g is None else g)
    return tuple(
        _C.ops["stack"](of_one, 0).reshape((*y.shape, *x.shape))
        if of_one
        else x.detach().new_zeros((*y.shape, *x.shape))
        for of_one, x in zip(rows, xs)
    )


def jacobian(
    func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"
):
    """The Jacobian of func: for each output and each input a tensor.

    `vectorize` and `strategy` choose how PyTorch computes it; the result is the same.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            "torch.autograd.functional.jacobian: `create_graph=True` and `strategy=forward-mode` "
            "are not supported together (yet)."
        )
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
            "supported together."
        )
    with enable_grad():
        is_tuple, given = _as_tuple(inputs, "inputs", "jacobian")
        xs = _fresh(given, create_graph)
        outs_tuple, outs = _call(func, xs, "jacobian", strict)
        blocks = tuple(_jacobian_of(y, i, xs, create_graph, strict) for i, y in enumerate(outs))
        blocks = tuple(_as_given(block, is_tuple) for block in blocks)
    return _released(_as_given(blocks, outs_tuple), create_graph)


def hessian(
    func,
    inputs,
    create_graph=False,
    strict=False,
    vectorize=False,
    outer_jacobian_strategy="reverse-mode",
):
    """The Hessian of func, which returns one number: for each two inputs a tensor."""
    is_tuple, given = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def one_number(*xs):
        was_tuple, outs = _as_tuple(func(*xs), "outputs", "hessian")
        _one_number(was_tuple, outs, "hessian")
        return outs[0].squeeze()

    def gradient(*xs):
        found = jacobian(one_number, xs, create_graph=True)
        _check_requires_grad(found, "jacobian", strict)
        return found

    found = jacobian(gradient, given, create_graph=create_graph, strict=strict)
    return _as_given(tuple(_as_given(row, is_tuple) for row in found), is_tuple)


def _gradient_at(func, inputs, function, create_graph, strict):
    """A function of one number at a point: inputs, output, gradient, and the shapes of both."""
    is_tuple, given = _as_tuple(inputs, "inputs", function)
    xs = _fresh(given, create_graph)
    was_tuple, outs = _call(func, xs, function, strict)
    _one_number(was_tuple, outs, function)
    one = _C.ops["ones_like"](outs[0].detach())
    back = _gradients(outs, xs, (one,), create_graph=True)
    _check_requires_grad([g for g in back if g is not None], "jacobian", strict)
    return is_tuple, xs, outs, _filled(back, xs, strict, "back")


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v times the Hessian)"""
    with enable_grad():
        is_tuple, xs, outs, back = _gradient_at(func, inputs, "vhp", create_graph, strict)
        v = _vectors(v, xs, is_tuple, "vhp", "input to the user-provided function is")
        found = _gradients(back, xs, v, create_graph)
        found = _filled(found, xs, strict, "double_back", create_graph)
    return (
        _released(outs[0], create_graph),
        _released(_as_given(found, is_tuple), create_graph),
    )


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), the Hessian times v), by one more gradient"""
    with enable_grad():
        is_tuple, xs, outs, back = _gradient_at(func, inputs, "hvp", create_graph, strict)
        v = _vectors(v, xs, is_tuple, "hvp", "input to the user-provided function is")
        dummies = tuple(_zeros_like(g.detach()).requires_grad_() for g in back)
        twice = _gradients(back, xs, dummies, create_graph=True)
        _check_requires_grad(twice, "grad_input", strict)
        found = _gradients(twice, dummies, v, create_graph)
        found = _filled(found, xs, strict, "double_back_trick", create_graph)
    return (
        _released(outs[0], create_graph),
        _released(_as_given(found, is_tuple), create_graph),
    )
