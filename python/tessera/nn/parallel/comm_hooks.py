"""What a communication hook of DistributedDataParallel is given."""


class GradBucket:
    """Gradients of some parameters, side by side in one tensor."""

    def __init__(self, index, is_last, buffer, gradients, parameters):
        self._index, self._is_last = index, is_last
        self._buffer, self._gradients, self._parameters = buffer, gradients, parameters

    def index(self):
        """Which bucket it is; the first has the gradients that are ready first."""
        return self._index

    def is_last(self):
        return self._is_last

    def buffer(self):
        return self._buffer

    def gradients(self):
        """Views of the buffer, in the parameters' shapes."""
        return self._gradients

    def parameters(self):
        return self._parameters

    def set_buffer(self, buffer):
        if buffer.shape != self._buffer.shape:
            raise ValueError(
                f"a buffer of {list(self._buffer.shape)} is needed, not {list(buffer.shape)}"
            )
        self._buffer.copy_(buffer)
