"""Random numbers: seeds, and the state of generators."""

import contextlib

from . import _C
from ._functions import manual_seed as manual_seed
from ._functions import seed as seed

default_generator = _C._default_generator("cpu")
initial_seed = _C.initial_seed


def get_rng_state():
    """The state of the CPU's generator, as PyTorch lays it out."""
    return default_generator.get_state()


def set_rng_state(new_state):
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"
):
    """Within it, random numbers are drawn that nobody outside notices."""
    if not enabled:
        yield
        return
    from . import cuda

    if devices is None:
        devices = range(cuda.device_count())
    devices = list(devices)
    before = get_rng_state()
    on_devices = [(d, cuda.get_rng_state(d)) for d in devices]
    try:
        yield
    finally:
        set_rng_state(before)
        for device, state in on_devices:
            cuda.set_rng_state(state, device)
