"""Runs what training programs use on the emulated GPU, so that the texts of its kernels are kept.

    TESSERA_EMULATOR=idle,nopoison,1x128GiB TESSERA_KEEP_KERNELS=FOLDER python tour.py usual
    TESSERA_EMULATOR=1x4GiB TESSERA_KEEP_KERNELS=FOLDER python tour.py values

The first word names a part of the tour (usual, values, records), the others single stations of it.
Only `values` needs an emulated GPU that computes. tools/pack/make.py runs them all.
"""

import sys
import time
import traceback
import warnings

import counted  # noqa: F401
import kernels  # noqa: F401
import programs  # noqa: F401
import records  # noqa: F401
from common import stations

import tessera as torch


def main():
    warnings.simplefilter("ignore")
    failed = []
    part, *wanted = sys.argv[1:] or ["usual"]
    for name, visit in stations(part).items():
        if wanted and name not in wanted:
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
