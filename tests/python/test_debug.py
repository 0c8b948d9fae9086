"""tessera.utils.debug."""

import tessera as torch
from tessera import nn
from tessera.utils.debug import GPUMemoryTracker, tensor_info


def test_tracker(accelerator):
    large = torch.randn(500, 1000, device="cuda")
    with GPUMemoryTracker() as tracker:
        model = nn.Linear(1000, 1000, bias=False).cuda()
        with torch.no_grad():
            output = model(large)
        during = tracker.memory_delta
        del output
    assert (
        4e6 <= tracker.memory_delta < 5e6 and tracker.memory_delta_mb == tracker.memory_delta / 1e6
    )
    assert 6e6 <= during and tracker.peak_memory >= tracker.start_memory + 6e6
    before = tracker.peak_memory_mb
    more = torch.zeros(1 << 22, device="cuda")
    assert tracker.peak_memory_mb == before  # it ended
    assert "peak_memory_mb=" in repr(tracker)
    del more, model


def test_tracker_of_a_device(accelerator):
    last = torch.cuda.device_count() - 1
    with GPUMemoryTracker(f"cuda:{last}") as tracker:
        x = torch.zeros(1 << 20, device=f"cuda:{last}")
    assert tracker.memory_delta >= 4 << 20
    del x


def test_tracker_without_a_device():
    if torch.cuda.is_available():
        return
    with GPUMemoryTracker() as tracker:
        torch.zeros(100)
    assert tracker.peak_memory_mb == tracker.memory_delta_mb == 0


def test_tensor_info(device):
    x = torch.ones(2, 3, device=device, requires_grad=True)
    text = tensor_info(x.t(), "xt")
    assert text.startswith("xt: shape=(3, 2), dtype=torch.float32, device=" + str(x.device))
    assert "24 bytes" in text and "strides=(1, 3)" in text and "grad_fn=" in text
    assert tensor_info(torch.zeros(10**6)).endswith("4.00 MB")
