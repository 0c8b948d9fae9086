"""Copies of a module on several devices, whose gradients flow to the original."""

from .scatter_gather import _device


def _copied(tensors, device, detach):
    """By identity: a tensor that several modules share is copied once."""
    out = {}
    for t in tensors:
        copy = t.to(device, non_blocking=True)
        out[id(t)] = copy.detach() if detach else copy
    return out


def replicate(network, devices, detach=False):
    """A list of replicas, one for each device, in which parameters are results, not leaves.

    On the device of the original its own tensors are used: what a replica there writes into
    buffers is kept, what others write is lost.
    """
    parameters, buffers = list(network.parameters()), list(network.buffers())
    modules = list(network.modules())
    number = {id(m): i for i, m in enumerate(modules)}
    replicas = []
    for device in map(_device, devices):
        values = _copied(parameters, device, detach) | _copied(buffers, device, True)
        copies = [m._replicate_for_data_parallel() for m in modules]
        for module, copy in zip(modules, copies):
            former = {}
            for name, p in module._parameters.items():
                if p is None:
                    copy._parameters[name] = None
                    continue
                # No leaf, so not among its parameters.
                copy.__dict__[name] = former[name] = values[id(p)]
            copy.__dict__["_former_parameters"] = former
            for name, b in module._buffers.items():
                copy._buffers[name] = None if b is None else values[id(b)]
            for name, child in module._modules.items():
                copy._modules[name] = None if child is None else copies[number[id(child)]]
        replicas.append(copies[0])
    return replicas
