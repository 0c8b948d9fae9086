"""`tessera memory`: a recorded history of device memory as a page to look at, and as text.

read.py reads a file, replay.py works out who held what when, pack.py puts that into arrays for the
page, page.py writes it, report.py says it in words.
"""

from .read import SnapshotError, read_snapshot
from .replay import Replay, busiest_device

__all__ = ["Replay", "SnapshotError", "busiest_device", "main", "read_snapshot"]


def main(args):
    from .command import main as command

    return command(args)
