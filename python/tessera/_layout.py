"""torch.layout and torch.memory_format: named constants."""


class _Named:
    def __init__(self, name, code):
        self._name = name
        self._code = code  # as the core numbers them

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


class layout(_Named):
    __module__ = "tessera"


class memory_format(_Named):
    __module__ = "tessera"


strided = layout("strided", 0)
# No tensor has these yet: what is asked for one raises.
sparse_coo = layout("sparse_coo", 1)
sparse_csr = layout("sparse_csr", 2)
sparse_csc = layout("sparse_csc", 3)
sparse_bsr = layout("sparse_bsr", 4)
sparse_bsc = layout("sparse_bsc", 5)
contiguous_format = memory_format("contiguous_format", 0)
preserve_format = memory_format("preserve_format", 1)
channels_last = memory_format("channels_last", 2)
channels_last_3d = memory_format("channels_last_3d", 3)
