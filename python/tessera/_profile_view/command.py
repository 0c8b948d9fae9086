"""`tessera run --profile`: the whole program is one profile, written when it ends."""

import atexit
import os
import sys


def takes_file(args):
    """Is the next argument the page's name, and not the program?"""
    return bool(args) and args[0].endswith((".html", ".json", ".json.gz"))


def begin(path, script):
    """From now to the end of the program."""
    from tessera import _C
    from tessera.cuda import is_available

    profile = _C._Profile(True, is_available(), False, True, False, False)
    profile.start()
    owner = os.getpid()

    def end():
        if os.getpid() != owner or not profile.started:
            return
        profile.stop()
        if path.endswith((".json", ".json.gz")):
            profile.export_chrome_trace(path)
        else:
            from . import write_page

            write_page(profile, path, os.path.basename(script))
        said = f"tessera: the profile is in {path}"
        if profile.dropped:
            said += f"; {profile.dropped} events were not recorded, it was full"
        print(said, file=sys.stderr)

    atexit.register(end)
