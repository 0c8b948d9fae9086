"""Tensors and models: what they are, and where."""

import tessera as torch


def tensor_info(tensor, name="tensor"):
    """One line: where a tensor is, its shape, dtype and bytes, and what it takes part in."""
    size = tensor.numel() * tensor.element_size()
    facts = [
        f"shape={tuple(tensor.shape)}",
        f"dtype={tensor.dtype}",
        f"device={tensor.device}",
        f"requires_grad={tensor.requires_grad}",
        f"{size} bytes" if size < 1e5 else f"{size / 1e6:.2f} MB",
    ]
    if not tensor.is_contiguous():
        facts.append(f"strides={tensor.stride()}")
    if tensor._base is not None:
        facts.append("a view")
    if tensor.device.type == "cpu" and tensor.is_pinned():
        facts.append("pinned")
    if tensor.grad_fn is not None:
        facts.append(f"grad_fn={type(tensor.grad_fn).__name__}")
    return f"{name}: " + ", ".join(facts)


def print_tensor_info(name, tensor):
    """Prints tensor_info()."""
    print(tensor_info(tensor, name))


def verify_model_device(model, expected_device):
    """Are all parameters and buffers there? An AssertionError names those that are not.

    `expected_device` is a kind of device ("cuda") or one of them ("cuda:1").
    """
    expected = torch.device(expected_device)
    wrong = []
    for kind, named in (("Parameter", model.named_parameters()), ("Buffer", model.named_buffers())):
        for name, tensor in named:
            device = tensor.device
            if device.type != expected.type or expected.index not in (None, device.index):
                wrong.append(f"{kind} {name} on {device}")
    if wrong:
        some = "; ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise AssertionError(f"{some}, expected {expected_device}")
