"""Deferred pointwise work: what was fused, what made it run, and how to turn it off."""

from . import _C

stats = _C._fuse_stats
reset_stats = _C._fuse_reset_stats
explain = _C._fuse_explain
mode = _C._fuse_mode
set_mode = _C._fuse_set_mode
run = _C._fuse_run


class disabled:
    """Within it, each operator runs when it is called."""

    def __enter__(self):
        self._before = mode()
        set_mode("off")

    def __exit__(self, *unused):
        set_mode(self._before)
