"""Modules on their devices, each in a thread of its own."""

import threading
import traceback
from contextlib import nullcontext

import tessera as torch

from .scatter_gather import _device, _map


def get_a_var(value):
    """A tensor in nested containers, or None."""
    found = []
    _map(value, lambda v: found.append(v) if isinstance(v, torch.Tensor) else None)
    return found[0] if found else None


def _place(device, given):
    """A device as such; where none is named, that of the inputs."""
    if device is None:
        tensor = get_a_var(given)
        device = tensor.device if tensor is not None else "cpu"
    return _device(device)


def _raise(error, text, replica, device):
    """As the error's own class where that can be made of a message."""
    message = f"Caught {type(error).__name__} in replica {replica} on device {device}.\n{text}"
    try:
        made = type(error)(message)
    except Exception:
        made = RuntimeError(message)
    raise made from error


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """The results of modules[i](*inputs[i], **kwargs_tup[i]), computed at the same time."""
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}"
        )
    kwargs_tup = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    devices = [None] * len(modules) if devices is None else list(devices)
    if not len(modules) == len(kwargs_tup) == len(devices):
        raise AssertionError("as many modules, keyword arguments and devices are needed")
    grad = torch.is_grad_enabled()
    cast = {
        kind: (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind))
        for kind in ("cuda", "cpu")
    }
    cached = torch.is_autocast_cache_enabled()
    results, failures = [None] * len(modules), {}
    devices = [_place(d, given) for d, given in zip(devices, inputs)]
    streams = [torch.cuda.current_stream(d) if d.type == "cuda" else None for d in devices]

    def work(i):
        try:
            args = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
            with (
                torch.set_grad_enabled(grad),
                torch.cuda.stream(streams[i]) if streams[i] else nullcontext(),
                torch.autocast("cuda", cast["cuda"][1], cast["cuda"][0], cached),
                torch.autocast("cpu", cast["cpu"][1], cast["cpu"][0], cached),
            ):
                results[i] = modules[i](*args, **kwargs_tup[i])
        except Exception as error:
            failures[i] = error, traceback.format_exc().rstrip()

    if len(modules) == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for i in sorted(failures):
        error, text = failures[i]
        _raise(error, f"Original {text}", i, devices[i])
    return results
