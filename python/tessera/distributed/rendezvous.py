"""Stores from an init method; init_process_group() uses the same in the core."""

from .._C import _dist_rendezvous
from ._stores import seconds
from .constants import default_pg_timeout


def rendezvous(url, rank=-1, world_size=-1, timeout=default_pg_timeout, **kwargs):
    """Gives the store, the rank and the world size once."""
    yield _dist_rendezvous(url, rank, world_size, seconds(timeout))


def register_rendezvous_handler(scheme, handler):
    raise NotImplementedError(
        "register_rendezvous_handler: make a store, and pass it to init_process_group(store=...)"
    )
