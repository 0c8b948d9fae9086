"""`tessera memory FILE`."""

import argparse
import os
import sys

from .page import write_page
from .read import SnapshotError, read_snapshot
from .replay import Replay
from .report import report


def main(args):
    parser = argparse.ArgumentParser(
        prog="tessera memory",
        description="Shows what torch.cuda.memory._dump_snapshot() wrote, Tessera's or PyTorch's: "
        "a summary here, and a page with everything.",
    )
    parser.add_argument("file", metavar="FILE", help="a snapshot: a pickle or JSON")
    parser.add_argument("-o", "--output", metavar="PAGE", help="the page to write; FILE.html else")
    parser.add_argument("--device", type=int, help="the device; that with most events else")
    parser.add_argument("--open", action="store_true", help="show the page in a browser")
    options = parser.parse_args(args)
    output = options.output or os.path.splitext(options.file)[0] + ".html"
    try:
        replay = load(options.file, options.device)
        write_page(replay, os.path.basename(options.file), output)
    except (SnapshotError, OSError) as error:
        print(f"tessera memory: {error}", file=sys.stderr)
        return 1
    print(report(replay, os.path.basename(options.file)))
    print(f"Page: {output} ({os.path.getsize(output) / 2**20:.1f} MiB)")
    if options.open:
        import webbrowser

        webbrowser.open("file://" + os.path.abspath(output))
    return 0


def load(path, device=None):
    replay = Replay(read_snapshot(path), device)
    if device is not None and not replay.trace and not replay.segments:
        raise SnapshotError(f"{path}: says nothing about device {device}")
    return replay
