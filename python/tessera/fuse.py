"""Deferred pointwise work: what was fused, what made it run, and how to turn it off."""

import os

from . import _C

stats = _C._fuse_stats
reset_stats = _C._fuse_reset_stats
explain = _C._fuse_explain
mode = _C._fuse_mode
set_mode = _C._fuse_set_mode
run = _C._fuse_run
source_lines = _C._fuse_source_lines
_C._fuse_pass_over(os.path.dirname(__file__) + os.sep)


def set_source_lines(on=True):
    """Should explain() say which line of the program each operator came from?

    On by default (10 to 30 ns an operator); TESSERA_FUSE_LINES=0 turns it off, except in check
    mode.
    """
    _C._fuse_set_source_lines(bool(on))


def set_tiny(elements):
    """Operators of at most so many elements run when they are called, on the CPU, where nothing
    that they read is pending: 1,024, or what TESSERA_FUSE_TINY says."""
    _C._fuse_set_tiny(int(elements))


class disabled:
    """Within it, each operator runs when it is called."""

    def __enter__(self):
        self._before = mode()
        set_mode("off")

    def __exit__(self, *unused):
        set_mode(self._before)
