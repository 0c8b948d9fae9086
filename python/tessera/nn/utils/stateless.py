"""Calling a module with other parameters than its own."""

import contextlib


def _owner(module, path):
    prefix, _, name = path.rpartition(".")
    return module.get_submodule(prefix), name


def _tied(module, tensors, tie_weights):
    """The paths to replace, with those of the same tensors added."""
    known = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    for path in tensors:
        if path not in known:
            raise KeyError(f"{path} is not a parameter or buffer of the module")
    if not tie_weights:
        return dict(tensors)
    replaced = dict(tensors)
    for path, value in tensors.items():
        for other, tensor in known.items():
            if tensor is known[path] and other not in tensors:
                replaced[other] = value
    return replaced


@contextlib.contextmanager
def _reparametrize_module(
    module, parameters_and_buffers, tie_weights=False, strict=False, stack_weights=False
):
    """Within it, the module has these tensors in the place of its own."""
    known = {path for path, _ in module.named_parameters(remove_duplicate=False)}
    known |= {path for path, _ in module.named_buffers(remove_duplicate=False)}
    unexpected = [path for path in parameters_and_buffers if path not in known]
    missing = [path for path in known if path not in parameters_and_buffers]
    if strict and (unexpected or missing):
        parts = []
        if unexpected:
            parts.append("Unexpected key(s): " + ", ".join(sorted(unexpected)) + ".")
        if missing:
            parts.append("Missing key(s): " + ", ".join(sorted(missing)) + ".")
        raise RuntimeError(
            f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(parts)
        )
    if unexpected:
        raise KeyError(f"{unexpected[0]} is not a parameter or buffer of the module")
    before = []
    try:
        for path, value in _tied(module, parameters_and_buffers, tie_weights).items():
            owner, name = _owner(module, path)
            where = owner._parameters if name in owner._parameters else owner._buffers
            before.append((where, name, where[name]))
            where[name] = value
        yield
    finally:
        for where, name, value in reversed(before):
            # A module may have written a buffer of its own: then that was the given tensor.
            if name in where:
                where[name] = value


def functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """module(*args, **kwargs) with the given tensors in the place of its parameters and buffers."""
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))
