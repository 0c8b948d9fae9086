"""Device memory: within a scope, in a line, and what a forward pass keeps of it."""

import tessera as torch


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


def log_memory(name="", device=None):
    """Prints what is allocated and reserved on the GPU; and gives it, in bytes."""
    allocated, reserved = torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
    start = f"{name}: " if name else ""
    print(f"{start}GPU Memory: {allocated / 1e9:.2f}GB allocated, {reserved / 1e9:.2f}GB reserved")
    return allocated, reserved


class _Saved:
    """Storages that were saved for backward: each counts once, and parameters not at all."""

    def __init__(self, model):
        tensors = [*model.parameters(), *model.buffers()]
        self.seen = {t.untyped_storage()._cdata for t in tensors}
        self.kept = []  # so that no other storage takes an address
        self.bytes = 0

    def __call__(self, tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in self.seen:
            self.seen.add(storage._cdata)
            self.kept.append(storage)
            self.bytes += storage.nbytes()
        return tensor


class ActivationMemory:
    """What a forward pass took: bytes on the device before, after and at most, and what was saved
    for backward, in all and by layer."""

    def __init__(self, before, after, peak, saved, layers, output):
        self.before, self.after, self.peak = before, after, peak
        self.saved, self.layers, self.output = saved, layers, output

    @property
    def activations(self):
        """What the pass left allocated; where no device counts, what was saved."""
        return self.after - self.before if self.after else self.saved

    def __str__(self):
        lines = [f"Activations: {self.activations / 1e6:.2f} MB"]
        if self.after:
            lines.append(
                f"GPU memory: {self.before / 1e6:.2f} MB before, {self.after / 1e6:.2f} MB after, "
                f"{self.peak / 1e6:.2f} MB at most"
            )
        lines.append(f"saved for backward: {self.saved / 1e6:.2f} MB, by layer:")
        width = max((len(name) for name, _, _ in self.layers), default=0)
        lines += [f"  {n:<{width}}  {b / 1e6:8.2f} MB  {kind}" for n, kind, b in self.layers if b]
        return "\n".join(lines)


def activation_memory(model, *inputs, verbose=True, **options):
    """Runs model(*inputs, **options) and prints the memory that its activations take.

    Beside what the device has allocated before and after, it tells what each layer saved for
    backward: memory that `torch.utils.checkpoint` or a smaller batch would give back. On the CPU,
    where nobody counts, that is all it tells. What it returns has the numbers, and the output.
    """
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    counts = device.type == "cuda"
    saved, layers, stack, handles = _Saved(model), {}, [], []

    def before(name, kind):
        layers.setdefault(name, [kind, 0])
        stack.append((name, saved.bytes))

    def after():
        name, at = stack.pop()
        layers[name][1] += saved.bytes - at

    for name, module in model.named_modules():
        if next(module.children(), None) is not None:
            continue
        kind = type(module).__name__
        handles.append(
            module.register_forward_pre_hook(lambda *_, n=name or kind, k=kind: before(n, k))
        )
        handles.append(module.register_forward_hook(lambda *_: after()))
    try:
        torch.fuse.run()
        with GPUMemoryTracker(device if counts else None) as tracker:
            with torch.autograd.graph.saved_tensors_hooks(saved, lambda tensor: tensor):
                output = model(*inputs, **options)
            torch.fuse.run()
    finally:
        for handle in handles:
            handle.remove()
    numbers = (tracker.start_memory, tracker.end_memory, tracker.peak_memory)
    rows = [(name, kind, size) for name, (kind, size) in layers.items()]
    result = ActivationMemory(*(numbers if counts else (0, 0, 0)), saved.bytes, rows, output)
    if verbose:
        print(result)
    return result
