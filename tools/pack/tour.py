"""Runs what training programs use on the emulated GPU, so that the texts of its kernels are kept.

    TESSERA_EMULATOR=idle,nopoison,1x128GiB TESSERA_KEEP_KERNELS=FOLDER python tour.py [STATION...]

Nothing is computed then, and where TESSERA_EMULATOR is not idle other stations are visited: those
that need values. tools/pack/make.py runs both and has a pack made of the texts.
"""

import os
import sys
import time
import traceback
import warnings

import counted  # noqa: F401
import kernels  # noqa: F401
import programs  # noqa: F401
from common import stations

import tessera as torch


def main():
    warnings.simplefilter("ignore")
    failed = []
    for name, visit in stations(
        values="idle" not in os.environ.get("TESSERA_EMULATOR", "")
    ).items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        began = time.monotonic()
        try:
            visit()
            torch.cuda.synchronize()
        except Exception:
            failed.append(name)
            print(f"{name}:", traceback.format_exc(limit=-4), file=sys.stderr)
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    if failed:
        print("stations that failed:", ", ".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
