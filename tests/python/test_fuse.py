"""tessera.fuse: modes, counters, and results that do not depend on them."""

import pytest

import tessera as torch
from tessera import fuse


@pytest.fixture(autouse=True)
def restore():
    before = fuse.mode()
    yield
    fuse.set_mode(before)


def work(device):
    torch.manual_seed(0)
    x = torch.randn(64, 64).to(device)
    y = x
    for _ in range(5):
        y = torch.exp(y * 0.1) + x
        y.mul_(0.5)
    return y.sum(0).tolist(), y.tolist()


def test_modes_agree_bit_for_bit(device):
    results = []
    for mode in ("off", "on", "check"):
        fuse.set_mode(mode)
        results.append(work(device))
    assert results[0] == results[1] == results[2]


def test_counters(device):
    fuse.set_mode("on")
    fuse.reset_stats()
    x = torch.ones(100, 100, device=device)
    y = x * 2 + 1
    y.tolist()
    stats = fuse.stats()
    assert stats["recorded"] >= 2 and stats["groups"] >= 1
    assert sum(stats["reasons"].values()) >= 1
    assert isinstance(fuse.explain(), str)
    fuse.reset_stats()
    assert fuse.stats()["recorded"] == 0


def test_disabled(device):
    fuse.set_mode("on")
    with fuse.disabled():
        assert fuse.mode() == "off"
        torch.ones(3, device=device) * 2
        assert fuse.stats()["pending"] == 0
    assert fuse.mode() == "on"
    with pytest.raises(ValueError):
        fuse.set_mode("sometimes")


def test_addresses_run_what_is_pending(device):
    fuse.set_mode("on")
    x = torch.ones(1000, device=device) * 3
    assert x.data_ptr()
    assert x[5].item() == 3.0
