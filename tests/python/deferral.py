"""For files whose tests all run with work of any size deferred, and nothing left over."""

import pytest

from tessera import fuse


@pytest.fixture(autouse=True)
def deferred():
    before = fuse.mode()
    fuse.set_mode("on")
    fuse.set_tiny(0)
    fuse.run()
    fuse.reset_stats()
    yield
    fuse.set_tiny(1024)
    fuse.set_mode(before)
