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


def _existing(which, what="Invalid device id"):
    """The number of a device that is there: asserted where PyTorch asserts it."""
    init()
    index = index_of(which)
    if index < 0:
        return current_device() if index == -1 else _no_such(index, what)
    return index if index < device_count() else _no_such(index, what)


def _no_such(index, what):
    count = device_count()
    exist = "1 device exists" if count == 1 else f"{count} devices exist"
    raise AssertionError(f"{what}: cuda:{index} was asked for, and {exist}")


def device_count():
    return _C._cuda_device_count()


def is_available():
    return device_count() > 0


def init():
    """Raises where there is no device, and says why; otherwise there is nothing to do."""
    if device_count() == 0:
        raise RuntimeError("CUDA is not available: " + _C._cuda_why_unavailable())
    _C._cuda_current_device()


def is_initialized():
    """Has a device been used? Asking which there are is no use."""
    return _C._cuda_is_initialized()


def current_device():
    return _C._cuda_current_device()


def set_device(device):
    index = index_of(device)
    if index >= 0:
        _C._cuda_set_device(index)


class _CudaDeviceProperties:
    """What a device says of itself."""

    def __init__(self, values):
        self.__dict__.update(values)

    @property
    def gcnArchName(self):
        return self.name

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size // 2**20}MB)"
        )


def get_device_properties(device=None):
    return _CudaDeviceProperties(_C._cuda_properties(_existing(device)))


def get_device_name(device=None):
    return get_device_properties(device).name


def get_device_capability(device=None):
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device, peer_device):
    """Can kernels of one device use the other one's memory?"""
    device = _existing(device)
    return _C._cuda_can_access_peer(device, _existing(peer_device, "Invalid peer device id"))


def synchronize(device=None):
    """Waits until a device has done everything that was asked of it."""
    _C._cuda_synchronize(index_of(device))


def manual_seed(seed):
    if is_available():
        _C._device_seed(current_device(), int(seed) % 2**64)


def manual_seed_all(seed):
    for index in range(device_count()):
        _C._device_seed(index, int(seed) % 2**64)


class device:
    """Makes a device current for a while; None and negative numbers change nothing."""

    def __init__(self, device):
        self.idx = index_of(device)
        self.prev_idx = -1

    def __enter__(self):
        if self.idx >= 0:
            self.prev_idx = current_device()
            _C._cuda_set_device(self.idx)

    def __exit__(self, *unused):
        if self.idx >= 0:
            _C._cuda_set_device(self.prev_idx)


class device_of(device):
    """Makes the device of a tensor or storage current for a while."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)
