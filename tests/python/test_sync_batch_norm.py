"""SyncBatchNorm in one process is batch normalisation."""

import pytest

import tessera as torch
from tessera import nn


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 4)])
def test_one_process(shape, device):
    torch.manual_seed(0)
    plain = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[len(shape)](3).to(device)
    synced = nn.SyncBatchNorm(3).to(device)
    x = torch.randn(shape).to(device)
    for _ in range(3):
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        first, second = plain(a), synced(b)
        assert torch.equal(first, second)
        first.square().sum().backward()
        second.square().sum().backward()
        assert torch.equal(a.grad, b.grad)
    assert torch.equal(plain.running_var, synced.running_var)
    plain.eval(), synced.eval()
    assert torch.equal(plain(x), synced(x))
    with pytest.raises(ValueError, match="at least 2D"):
        synced(torch.ones(3, device=device))


def test_conversion():
    net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm1d(4)))
    net[1].running_mean.fill_(3.0)
    net.eval()
    made = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert isinstance(made[1], nn.SyncBatchNorm) and isinstance(made[2][0], nn.SyncBatchNorm)
    assert not made[1].training and made[1].running_mean.tolist() == [3.0, 3.0]
    assert list(made.state_dict()) == [
        "0.weight",
        "0.bias",
        *(f"1.{n}" for n in ("weight", "bias", "running_mean", "running_var")),
        "1.num_batches_tracked",
        *(f"2.0.{n}" for n in ("weight", "bias", "running_mean", "running_var")),
        "2.0.num_batches_tracked",
    ]
