"""tessera.utils.debug."""

import pytest

import tessera as torch
from tessera import nn
from tessera.utils.debug import (
    GPUMemoryTracker,
    activation_memory,
    find_graph_leaks,
    log_memory,
    print_tensor_info,
    tensor_info,
    verify_model_device,
)


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


def test_print_tensor_info_and_log_memory(device, capsys):
    print_tensor_info("x", torch.zeros(2, device=device))
    assert capsys.readouterr().out.startswith("x: shape=(2,), dtype=torch.float32, device=")
    x = torch.zeros(1 << 20, device=device)
    allocated, reserved = log_memory("now")
    assert capsys.readouterr().out == (
        f"now: GPU Memory: {allocated / 1e9:.2f}GB allocated, {reserved / 1e9:.2f}GB reserved\n"
    )
    assert (allocated >= 4 << 20) == (device == "cuda") and reserved >= allocated
    del x


def test_verify_model_device(device):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).to(device)
    verify_model_device(model, device)
    with pytest.raises(AssertionError, match=r"Parameter 0.weight on .*and 2 more, expected meta"):
        verify_model_device(model, "meta")
    if device == "cuda":
        verify_model_device(model, "cuda:0")
        model[1].running_mean = model[1].running_mean.cpu()
        with pytest.raises(AssertionError, match="Buffer 1.running_mean on cpu, expected cuda"):
            verify_model_device(model, "cuda")


def test_activation_memory(device, capsys):
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 8)).to(device)
    x = torch.randn(1000, 256, device=device)
    found = activation_memory(model, x)
    text = capsys.readouterr().out
    # The input of each product: 1000 x 256 and 1000 x 512; the ReLU's result is the second.
    kept = 1000 * (256 + 512) * 4
    assert kept <= found.saved <= kept + 1000 * 512 * 4
    rows = {name: size for name, _, size in found.layers}
    assert rows["0"] == 1000 * 256 * 4 and set(rows) == {"0", "1", "2"}
    assert found.output.shape == (1000, 8) and "saved for backward" in text
    if device == "cuda":
        assert found.before > 0 and found.after > found.before and found.peak >= found.after
        assert 1000 * 512 * 4 <= found.activations <= 3 * 1000 * 512 * 4
    else:
        assert found.activations == found.saved
    found.output.sum().backward()  # the graph is an ordinary one
    assert model[0].weight.grad is not None
    with torch.no_grad():
        assert activation_memory(model, x, verbose=False).saved == 0


def train(losses, keep, device):
    model = nn.Linear(4, 1).to(device)
    x = torch.randn(8, 4, device=device)

    def step():
        loss = (model(x) ** 2).mean()
        losses.append(keep(loss))
        loss.backward(retain_graph=True)

    return step


def test_graph_leaks_are_found(device, capsys):
    losses = []
    finder = find_graph_leaks(train(losses, lambda loss: loss, device))
    text = capsys.readouterr().out
    assert finder.grows and len(finder.counts) == 5 and finder.leaks
    assert any("'losses'" in name and count == 5 for name, count in finder.holders), text
    assert "a leak" in text and "loss.item()" in text and "test_debug.py:" in text


def test_numbers_are_no_leak(device, capsys):
    losses = []
    finder = find_graph_leaks(train(losses, lambda loss: loss.item(), device))
    assert not finder.grows and not any("'losses'" in name for name, _ in finder.holders)
    assert len(losses) == 5 and "a leak" not in capsys.readouterr().out
