"""The generators of cuda devices."""

from .. import _C
from .._missing import module_getattr
from ._device import current_device, device_count, is_available
from ._device import index_of as _index_of
from ._device import manual_seed as manual_seed
from ._device import manual_seed_all as manual_seed_all


def _generator(device):
    index = _index_of(device)
    return _C._default_generator(f"cuda:{current_device() if index < 0 else index}")


def get_rng_state(device="cuda"):
    """The state of a device's generator."""
    return _generator(device).get_state()


def get_rng_state_all():
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state, device="cuda"):
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states):
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def initial_seed():
    return _generator(None).initial_seed()


def seed():
    """Seeds the current device's generator with a number nobody knows."""
    if is_available():
        import secrets

        manual_seed(secrets.randbits(64))


def seed_all():
    """Seeds all devices' generators with one such number."""
    import secrets

    manual_seed_all(secrets.randbits(64))


__getattr__ = module_getattr(__name__)
