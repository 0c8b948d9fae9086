"""What a worker process knows of itself."""

_worker_info = None


class WorkerInfo:
    """Its id, how many there are, its seed and its copy of the dataset."""

    __initialized = False

    def __init__(self, **kwargs):
        for key, value in kwargs.items():
            setattr(self, key, value)
        self.__keys = tuple(kwargs)
        self.__initialized = True

    def __setattr__(self, key, value):
        if self.__initialized:
            raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")
        super().__setattr__(key, value)

    def __repr__(self):
        items = ", ".join(f"{k}={getattr(self, k)}" for k in self.__keys)
        return f"{type(self).__name__}({items})"


def set_worker_info(info):
    global _worker_info
    _worker_info = info


def get_worker_info():
    """In a worker: id, num_workers, seed and its copy of the dataset. None elsewhere."""
    return _worker_info
