"""Verifies files of torch.save and safetensors files for `tessera check FILE`."""

import os
import pickle
import sys

_ENDINGS = (".pt", ".pth", ".ckpt", ".safetensors")
_MAGIC = (b"PK\x03\x04", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9")  # zip; PyTorch before 1.6


def is_saved_file(path):
    """Whether a path names saved tensors, by its ending or by its first bytes."""
    if os.path.isdir(path):
        return False
    if path.endswith(_ENDINGS):
        return True
    try:
        with open(path, "rb") as file:
            return file.read(9).startswith(_MAGIC)
    except OSError:
        return False


def _shown(text):
    """Text that any terminal takes; bytes of a name that are not UTF-8 are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def verify(path):
    """Prints what a file holds. 0 if it is whole, 1 if it is damaged, 2 if it cannot be read."""
    from .. import _C

    try:
        form, size, parts, checked, unknown = _C._verify_file(path)
    except OSError as error:
        print(_shown(f"tessera: {error}"), file=sys.stderr)
        return 2
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        print(_shown(str(error).removeprefix("Weights only load failed. ")))
        return 1
    if checked == parts and parts:
        state = "all checksums match"
    elif checked:
        state = f"{checked} checksums match, {parts - checked} entries have none"
    else:
        state = "the structure is whole; there are no checksums, so changed bytes are not noticed"
    what = "entries" if form.startswith("archive") else "tensors"
    print(_shown(f"{path}: {form}, {parts} {what}, {size} bytes: {state}"))
    if unknown:
        print(f"  names {len(unknown)} globals that are not data: {', '.join(unknown)}")
    return 0
