"""Parameters as one vector, and back."""

import tessera as torch


def _check_device(param, known):
    device = param.get_device() if param.is_cuda else -1
    if known is not None and device != known:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )
    return device


def parameters_to_vector(parameters):
    """All parameters, one after another."""
    device, parts = None, []
    for param in parameters:
        device = _check_device(param, device)
        parts.append(param.view(-1))
    return torch.cat(parts)


def vector_to_parameters(vec, parameters):
    """Gives each parameter its part of the vector."""
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {torch.typename(vec)}")
    device, at = None, 0
    for param in parameters:
        device = _check_device(param, device)
        size = param.numel()
        param.data = vec[at : at + size].view_as(param).data
        at += size
