"""Which devices there are, and which one is current."""

from .. import _C


def index_of(which):
    """A device's number from an int, a string, a device or None (the current one)."""
    if which is None:
        return -1
    if isinstance(which, int):
        return which
    which = _C.device(which)
    if which.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {which}")
    return -1 if which.index is None else which.index


def device_count():
    return _C._cuda_device_count()


def is_available():
    return device_count() > 0


def init():
    if not is_available():
        raise RuntimeError("CUDA is not available: " + _C._cuda_why_unavailable())


def is_initialized():
    return is_available()


def current_device():
    return _C._cuda_current_device()


def set_device(device):
    index = index_of(device)
    if index >= 0:
        _C._cuda_set_device(index)


class Properties:
    """What a device says of itself."""

    def __init__(self, values):
        self.__dict__.update(values)

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, "
            f"multi_processor_count={self.multi_processor_count})"
        )


def get_device_properties(device=None):
    return Properties(_C._cuda_properties(index_of(device)))


def get_device_name(device=None):
    return get_device_properties(device).name


def get_device_capability(device=None):
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device, peer_device):
    return index_of(device) != index_of(peer_device)


def synchronize(device=None):
    _C._cuda_synchronize(index_of(device))


def manual_seed(seed):
    if is_available():
        _C._device_seed(current_device(), int(seed) % 2**64)


def manual_seed_all(seed):
    for index in range(device_count()):
        _C._device_seed(index, int(seed) % 2**64)


class device:
    """Makes a device current for a while."""

    def __init__(self, device):
        self.idx = index_of(device)

    def __enter__(self):
        self.prev_idx = current_device()
        if self.idx >= 0:
            _C._cuda_set_device(self.idx)

    def __exit__(self, *unused):
        _C._cuda_set_device(self.prev_idx)


class device_of(device):
    """Makes the device of a tensor current for a while."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)
