"""torch.cuda.amp.common."""

from ... import _C


def amp_definitely_not_available():
    return _C._cuda_device_count() == 0
