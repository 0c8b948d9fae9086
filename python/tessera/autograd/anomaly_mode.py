"""Anomaly mode: backward says which operator of the forward pass a bad gradient came from."""

from .. import _C
from .._grad_mode import _Context


class set_detect_anomaly(_Context):
    """Sets the mode at once; as a context, gives the one before back."""

    def __init__(self, mode, check_nan=True):
        self._before = _C._anomaly()
        self._wanted = (bool(mode), bool(check_nan))
        _C._set_anomaly(*self._wanted)

    def _again(self):
        return set_detect_anomaly(*self._wanted)

    def __enter__(self):
        pass

    def __exit__(self, *unused):
        _C._set_anomaly(*self._before)


class detect_anomaly(_Context):
    """Within it, nodes remember the line they come from, and NaN in a gradient is an error."""

    def __init__(self, check_nan=True):
        self._check_nan = check_nan
        self._before = []

    def _again(self):
        return detect_anomaly(self._check_nan)

    def __enter__(self):
        self._before.append(_C._anomaly())
        _C._set_anomaly(True, bool(self._check_nan))

    def __exit__(self, *unused):
        _C._set_anomaly(*self._before.pop())


def is_anomaly_enabled():
    return _C._anomaly()[0]


def is_anomaly_check_nan_enabled():
    return _C._anomaly()[1]
