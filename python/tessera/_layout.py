"""torch.layout and torch.memory_format: named constants."""


class _Named:
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


class layout(_Named):
    __module__ = "tessera"


class memory_format(_Named):
    __module__ = "tessera"


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
