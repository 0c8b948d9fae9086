"""Memory that runs out at every single allocation of a training step."""

import copy
import gc

import pytest

import tessera as torch
from tessera import _C, fuse, nn
from tessera.nn import functional as F


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.first = nn.Linear(4 * 16, 32)
        self.drop = nn.Dropout(0.25)
        self.last = nn.Linear(32, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        x = self.drop(F.gelu(self.first(x.flatten(1))))
        return self.last(F.layer_norm(x, (32,)))


class Training:
    def __init__(self, device):
        torch.manual_seed(0)
        self.device = device
        self.model = Small().to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.x = torch.randn(6, 1, 8, 8).to(device)
        self.y = torch.randint(0, 5, (6,)).to(device)
        self.step()  # the optimizer's state is there
        self.saved = {k: v.cpu().clone() for k, v in self.model.state_dict().items()}
        self.saved_optimizer = self.state_on_host()
        self.generator = torch.cuda.get_rng_state()

    def state_on_host(self):
        state = self.optimizer.state_dict()
        host = {
            k: {n: t.cpu().clone() if torch.is_tensor(t) else t for n, t in s.items()}
            for k, s in state["state"].items()
        }
        return {"state": host, "param_groups": state["param_groups"]}

    def restore(self):
        self.optimizer.zero_grad()
        self.model.load_state_dict(self.saved)
        self.optimizer.load_state_dict(copy.deepcopy(self.saved_optimizer))
        torch.cuda.set_rng_state(self.generator)

    def step(self):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def result(self):
        loss = self.step()
        return [loss] + [p.detach().cpu().flatten().tolist() for p in self.model.parameters()]


def allocated():
    gc.collect()
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated()


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("permanent", [False, True])
def test_at_every_allocation(accelerator, deferred, permanent):
    before = fuse.mode()
    fuse.set_mode("on" if deferred else "off")
    try:
        run(accelerator, permanent)
    finally:
        fuse.set_mode(before)


def run(device, permanent):
    training = Training(device)
    training.restore()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    expected = training.result()
    steps = torch.cuda.memory_stats()["allocation.all.allocated"] - before
    assert steps > 30
    training.restore()
    held = allocated()
    failures = 0
    for n in range(steps + 1):
        _C._cuda_fail_after(0, n, permanent)
        try:
            training.step()
        except torch.cuda.OutOfMemoryError as error:
            failures += 1
            assert "Tried to allocate" in str(error)
            del error
        finally:
            _C._cuda_fail_after(0, -1, False)
        training.restore()
        assert allocated() == held, f"memory was lost by the failure of allocation {n}"
        if n % 7 == 0 or n == steps:
            assert training.result() == expected, f"other bits after the failure of allocation {n}"
            training.restore()
    # Of deferred results those without memory are tried again, each by itself.
    assert failures > steps * (0.8 if permanent or fuse.mode() == "off" else 0.3)
