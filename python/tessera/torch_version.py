"""TorchVersion: a version as text that compares as versions do."""

import re

from ._missing import module_getattr
from .version import __version__ as internal_version


def _key(text):
    """Numbers of the release, and whether something like rc1 says that it is not out yet."""
    found = re.match(r"v?(\d+(?:\.\d+)*)((?:a|b|rc|\.dev)\d*)?", str(text))
    if not found:
        raise ValueError(f"Invalid version: '{text}'")
    release = [int(n) for n in found.group(1).split(".")]
    while release and release[-1] == 0:
        release.pop()
    return release, found.group(2) is None, found.group(2) or ""


def _other(value):
    if isinstance(value, (tuple, list)):
        return _key(".".join(str(v) for v in value))
    return _key(value)


class TorchVersion(str):
    """Compares with texts and tuples: TorchVersion("1.10.0") > "1.9" and >= (1, 10)."""

    def _compare(self, other, method):
        try:
            return getattr(_key(self), method)(_other(other))
        except ValueError:
            return getattr(str(self), method)(other)

    def __gt__(self, other):
        return self._compare(other, "__gt__")

    def __lt__(self, other):
        return self._compare(other, "__lt__")

    def __eq__(self, other):
        return self._compare(other, "__eq__")

    def __ne__(self, other):
        return not self == other

    def __ge__(self, other):
        return self._compare(other, "__ge__")

    def __le__(self, other):
        return self._compare(other, "__le__")

    __hash__ = str.__hash__


__version__ = TorchVersion(internal_version)
__getattr__ = module_getattr(__name__)
