"""torch.device(...) before a function: what it makes without naming a device is made there."""

import functools


def decorated(device, function):
    @functools.wraps(function)
    def within(*args, **kwargs):
        with device:
            return function(*args, **kwargs)

    return within
