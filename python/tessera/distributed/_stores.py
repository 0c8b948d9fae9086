"""Stores with PyTorch's signatures, over the core's."""

from datetime import timedelta

from .._C import FileStore, HashStore, PrefixStore, Store, _TCPStore

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]


def seconds(timeout):
    """Of a timedelta, or of a number of seconds."""
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def _wait(self, keys, timeout=None):
    """Blocks until all keys are there; raises DistStoreError when the time is up."""
    if timeout is None:
        self._wait(list(keys))
    else:
        self._wait(list(keys), seconds(timeout))


def _multi_set(self, keys, values):
    for key, value in zip(keys, values, strict=True):
        self.set(key, value)


Store.wait = _wait
Store.set_timeout = lambda self, timeout: self._set_timeout(seconds(timeout))
Store.timeout = property(lambda self: timedelta(seconds=self._timeout()))
Store.multi_get = lambda self, keys: [self.get(key) for key in keys]
Store.multi_set = _multi_set
Store.has_extended_api = lambda self: True


class TCPStore(_TCPStore):
    """A store whose server is in the process that is_master. It listens at this one address, and
    lets in who knows TESSERA_DIST_SECRET."""

    def __init__(
        self,
        host_name,
        port,
        world_size=None,
        is_master=False,
        timeout=timedelta(seconds=300),
        wait_for_workers=True,
        multi_tenant=False,
        master_listen_fd=None,
        use_libuv=True,
    ):
        if master_listen_fd is not None:
            raise NotImplementedError("TCPStore: master_listen_fd")
        super().__init__(
            host_name,
            port,
            -1 if world_size is None else world_size,
            is_master,
            seconds(timeout),
            wait_for_workers,
        )
