"""Small helpers for looking at what a program does. Not in PyTorch: its users write them."""

import tessera as torch

from .._missing import module_getattr

__all__ = ["GPUMemoryTracker", "tensor_info"]


class GPUMemoryTracker:
    """Device memory within a scope, as `time.perf_counter()` is for time.

    with GPUMemoryTracker() as tracker:
        output = model(inputs)
    print(f"Peak memory: {tracker.peak_memory_mb:.2f} MB")
    print(f"Net memory change: {tracker.memory_delta_mb:.2f} MB")

    `peak_memory` is the most that was allocated at once, `memory_delta` what is allocated at the
    end beyond what was at the beginning; with `_mb`, in millions of bytes. Within the scope they
    are those of now. It resets the device's peak: trackers of one device should not be nested.
    Where there is no device everything is 0.
    """

    def __init__(self, device=None):
        self._device = device
        self._end = None

    def __enter__(self):
        self._end = None
        self._there = torch.cuda.is_available()
        if self._there:
            torch.cuda.reset_peak_memory_stats(self._device)
            self.start_memory = torch.cuda.memory_allocated(self._device)
        else:
            self.start_memory = 0
        return self

    def __exit__(self, *unused):
        self._end = self._now()

    def _now(self):
        """What is allocated, and the most that was."""
        if not self._there:
            return 0, 0
        return (
            torch.cuda.memory_allocated(self._device),
            torch.cuda.max_memory_allocated(self._device),
        )

    @property
    def end_memory(self):
        return (self._end or self._now())[0]

    @property
    def peak_memory(self):
        return (self._end or self._now())[1]

    @property
    def memory_delta(self):
        return self.end_memory - self.start_memory

    @property
    def peak_memory_mb(self):
        return self.peak_memory / 1e6

    @property
    def memory_delta_mb(self):
        return self.memory_delta / 1e6

    def __repr__(self):
        return (
            f"GPUMemoryTracker(peak_memory_mb={self.peak_memory_mb:.2f}, "
            f"memory_delta_mb={self.memory_delta_mb:.2f})"
        )


def tensor_info(tensor, name="tensor"):
    """One line: where a tensor is, its shape, dtype and bytes, and what it takes part in."""
    size = tensor.numel() * tensor.element_size()
    facts = [
        f"shape={tuple(tensor.shape)}",
        f"dtype={tensor.dtype}",
        f"device={tensor.device}",
        f"requires_grad={tensor.requires_grad}",
        f"{size} bytes" if size < 1e5 else f"{size / 1e6:.2f} MB",
    ]
    if not tensor.is_contiguous():
        facts.append(f"strides={tensor.stride()}")
    if tensor._base is not None:
        facts.append("a view")
    if tensor.device.type == "cpu" and tensor.is_pinned():
        facts.append("pinned")
    if tensor.grad_fn is not None:
        facts.append(f"grad_fn={type(tensor.grad_fn).__name__}")
    return f"{name}: " + ", ".join(facts)


__getattr__ = module_getattr(__name__)
