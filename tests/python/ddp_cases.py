"""What each process of tests/python/test_ddp.py does: ddp_cases.py CASE BACKEND DEVICE.

Each case is a function; what it returns goes to rank 0's standard output as JSON.
"""

import json
import sys
import warnings
from datetime import timedelta

import tessera as torch
import tessera.distributed as dist
from tessera import nn
from tessera.nn.parallel import DistributedDataParallel as DDP

DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cpu"


class Net(nn.Module):
    """With a layer norm, a parameter that is used twice and one that is not trained."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.norm = nn.LayerNorm(16)
        self.twice = nn.Linear(16, 16)
        self.last = nn.Linear(16, 3)
        self.fixed = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x):
        h = torch.relu(self.norm(self.first(x)))
        h = self.twice(torch.tanh(self.twice(h)))
        return self.last(h) * self.fixed


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(4, 4), nn.Linear(4, 4)
        self.never = nn.Linear(4, 4)
        self.out = nn.Linear(4, 1)

    def forward(self, x, which):
        return self.out(self.left(x) if which == "left" else self.right(x))


def batch(step, rows=32):
    g = torch.Generator().manual_seed(1000 + step)
    x = torch.randn(rows, 6, generator=g)
    return x.to(DEVICE), torch.stack([x[:, 0] * x[:, 1], x[:, 2], x[:, 3].sin()], 1).to(DEVICE)


def values(module):
    return [p.detach().cpu().flatten().tolist() for p in module.parameters()]


def everywhere(value):
    """Every rank's, on every rank."""
    out = [None] * dist.get_world_size()
    dist.all_gather_object(out, value)
    return out


def train(model, steps, share, optimizer):
    """`share(tensor)`: this process's rows. The loss of a batch is the average of its parts'."""
    for step in range(steps):
        x, y = map(share, batch(step))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def make(seed=0):
    torch.manual_seed(seed)
    return Net().to(DEVICE)


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def alone(steps=50):
    model = make()
    train(model, steps, lambda t: t, optimizer_of(model))
    return values(model)


def own_rows(t):
    n = len(t) // dist.get_world_size()
    return t[dist.get_rank() * n : (dist.get_rank() + 1) * n]


def same_as_one_process(**options):
    """50 steps; each rank starts from other values, and rank 0's count."""
    model = DDP(make(dist.get_rank()), **options)
    train(model, 50, own_rows, optimizer_of(model))
    every = everywhere(values(model))
    return {
        "bitwise": all(v == every[0] for v in every),
        "ddp": every[0],
        "alone": alone(),
        "buckets": len(model.reducer.bucket_members()),
        "overlapped": model.reducer.overlapped,
    }


def small_buckets():
    return same_as_one_process(bucket_cap_mb=0.0002)


def as_views():
    return same_as_one_process(gradient_as_bucket_view=True, bucket_cap_mb=0.0002)


def static_graph():
    return same_as_one_process(static_graph=True)


def finds_unused():
    return same_as_one_process(find_unused_parameters=True)


def accumulates():
    """no_sync for all parts but the last."""
    model = DDP(make())
    optimizer = optimizer_of(model)
    for step in range(10):
        x, y = map(own_rows, batch(step))
        optimizer.zero_grad()
        half = len(x) // 2
        with model.no_sync():
            (nn.functional.mse_loss(model(x[:half]), y[:half]) / 2).backward()
            apart = everywhere(model.module.first.weight.grad.sum().item())
        (nn.functional.mse_loss(model(x[half:]), y[half:]) / 2).backward()
        optimizer.step()
    every = everywhere(values(model))
    return {
        "bitwise": all(v == every[0] for v in every),
        "apart": len(set(apart)) > 1,
        "ddp": every[0],
        "alone": alone(10),
    }


def unused_parameters():
    """Which branch runs differs between ranks and steps; one never does."""
    torch.manual_seed(0)
    model = DDP(Branches().to(DEVICE), find_unused_parameters=True)
    seen = []
    for step in range(4):
        which = "left" if (step + dist.get_rank()) % 2 == 0 or step == 3 else "right"
        model.zero_grad()
        model(torch.ones(2, 4, device=DEVICE), which).sum().backward()
        seen.append(
            {
                n: None if p.grad is None else p.grad.sum().item()
                for n, p in model.module.named_parameters()
            }
        )
    return everywhere(seen)


def unused_without_asking():
    torch.manual_seed(0)
    model = DDP(Branches().to(DEVICE))
    x = torch.ones(2, 4, device=DEVICE)
    model(x, "left").sum().backward()
    try:
        model(x, "left")
    except RuntimeError as error:
        return str(error)


def different_models():
    def error_of(module):
        try:
            DDP(module)
        except RuntimeError as error:
            return str(error)

    wide = dist.get_rank() == 1
    shapes = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5 if wide else 2))
    count = nn.Sequential(nn.Linear(3, 4), *([nn.Linear(4, 4)] if wide else []))
    return everywhere([error_of(shapes), error_of(count)])


def buffers():
    net = nn.BatchNorm1d(3).to(DEVICE)
    model = DDP(net)
    x = torch.full((4, 3), float(dist.get_rank()), device=DEVICE)
    model(x + torch.randn(4, 3).to(DEVICE))
    before = everywhere(net.running_mean.tolist())
    model(x)
    after = everywhere(net.num_batches_tracked.item())
    model.eval()
    with torch.no_grad():
        model(x)
    together = everywhere(net.running_mean.tolist())
    return {"before": before, "after": after, "together": together}


def hooks_and_views():
    """A hook in the place of the average, a callback's order, views of buckets."""
    model = DDP(make(), gradient_as_bucket_view=True)
    x, y = map(own_rows, batch(0))
    nn.functional.mse_loss(model(x), y).backward()
    wanted = model.module.last.weight.grad.clone()
    model.zero_grad()
    calls = []

    def hook(state, bucket):
        calls.append((state, bucket.index(), bucket.is_last(), len(bucket.parameters())))
        total = bucket.buffer() / dist.get_world_size()
        work = dist.all_reduce(total, async_op=True)
        return work.get_future().then(lambda f: total)

    model.register_comm_hook("state", hook)
    nn.functional.mse_loss(model(x), y).backward()
    got = model.module.last.weight.grad
    return {"calls": calls, "same": torch.allclose(got, wanted), "shares": everywhere(1)}


def compressed():
    from tessera.distributed.algorithms.ddp_comm_hooks import default_hooks

    model = DDP(make())
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    x, y = map(own_rows, batch(0))
    nn.functional.mse_loss(model(x), y).backward()
    one = make()
    nn.functional.mse_loss(one(batch(0)[0]), batch(0)[1]).backward()
    close = [
        torch.allclose(a.grad, b.grad, rtol=0.02, atol=0.02)
        for a, b in zip(model.parameters(), one.parameters())
        if a.grad is not None
    ]
    return {"close": all(close), "grads": len(close)}


def mixed_precision():
    model = DDP(make())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=2.0**10)
    kind = DEVICE.split(":")[0]
    losses, stepped = [], []
    for step in range(20):
        x, y = map(own_rows, batch(step % 2))
        if step == 5 and dist.get_rank() == 1:
            x = x * float("inf")
        optimizer.zero_grad()
        with torch.autocast(kind, dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x).float(), y)
        scaler.scale(loss).backward()
        stepped.append(bool(scaler.step(optimizer)))
        scaler.update()
        losses.append(loss.item())
    every = everywhere([values(model), stepped, scaler.get_scale()])
    return {"bitwise": all(v == every[0] for v in every), "stepped": stepped, "losses": losses}


def checkpointed():
    """Reentrant checkpoints run backwards of their own: the same parameters again."""
    from tessera.utils.checkpoint import checkpoint

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = make()

        def forward(self, x):
            return checkpoint(self.net, x.requires_grad_(), use_reentrant=True)

    model = DDP(Outer())
    x, y = map(own_rows, batch(0))
    for _ in range(2):
        model.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
    one = make()
    nn.functional.mse_loss(one(batch(0)[0]), batch(0)[1]).backward()
    return all(
        torch.allclose(a.grad, b.grad, rtol=1e-4, atol=1e-6)
        for a, b in zip(model.module.net.parameters(), one.parameters())
        if b.grad is not None
    )


def odd_parameters():
    """Several dtypes, a number, an empty one, one laid out by channels: as the gradients lie."""

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.complex = nn.Parameter(torch.ones(3, dtype=torch.complex64))
            self.halves = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
            self.doubles = nn.Parameter(torch.ones(3, dtype=torch.float64))
            self.number, self.empty = (
                nn.Parameter(torch.tensor(2.0)),
                nn.Parameter(torch.ones(0, 4)),
            )
            self.conv = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)

        def forward(self, x):
            out = (self.complex * x).abs().sum() + self.number * x + self.empty.sum()
            out = out + (self.halves * x).sum().float() + (self.doubles * x).sum().float()
            return out + self.conv(x.expand(1, 3, 4, 4)).sum()

    module = Odd().to(DEVICE)
    seen = []
    for as_view in (False, True):
        model = DDP(module, gradient_as_bucket_view=as_view)
        for _ in range(2):
            model.zero_grad()
            model(torch.tensor(float(dist.get_rank() + 1), device=DEVICE)).backward()
        named = dict(module.named_parameters())
        assert all(p.grad.stride() == p.stride() for p in named.values())
        means = {n: p.grad.abs().double().mean().item() for n, p in named.items() if p.numel()}
        seen.append((means, sorted({str(p.grad.dtype) for p in named.values()})))
        del model
    return seen


def sync_batch_norm():
    """A network with statistics of all rows, against one process that has them."""

    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4)
            self.last = nn.Linear(4, 1)

        def forward(self, x):
            return self.last(torch.tanh(self.norm(self.conv(x))).mean(-1))

    def rows(step):
        g = torch.Generator().manual_seed(step)
        return torch.randn(12, 2, 9, generator=g).to(DEVICE) * (1 + step)

    def steps(model, share):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            model(share(rows(step))).square().mean().backward()
            optimizer.step()
        return values(model) + [b.double().flatten().tolist() for b in model.buffers()]

    torch.manual_seed(0)
    one = Rows().to(DEVICE)
    torch.manual_seed(0)
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(Rows().to(DEVICE))
    got = steps(DDP(synced), own_rows)
    return {"bitwise": len(set(map(str, everywhere(got)))) == 1, "ddp": got,
            "alone": steps(one, lambda t: t)}  # fmt: skip


def own_device():
    """Each rank has a device, and touches no other, whichever is current."""
    rank = dist.get_rank()
    model = DDP(nn.Linear(4, 2).cuda(rank), device_ids=[rank])
    out = model(torch.full((3, 4), float(rank)))
    out.sum().backward()
    grad = model.module.weight.grad
    other = torch.cuda.memory_reserved(1 - rank)
    return everywhere([str(out.device), str(grad.device), grad[0, 0].item(), other])


def state_and_copies():
    import copy
    import pickle

    model = DDP(make())
    names = list(model.state_dict())
    again = pickle.loads(pickle.dumps(model))
    x, y = map(own_rows, batch(0))
    for m in (model, again, copy.deepcopy(model)):
        nn.functional.mse_loss(m(x), y).backward()
    same = torch.equal(model.module.last.weight.grad, again.module.last.weight.grad)
    return {"names": names, "same": same}


def main():
    warnings.simplefilter("error")
    dist.init_process_group(sys.argv[2], timeout=timedelta(seconds=300))
    if DEVICE.startswith("cuda"):
        torch.cuda.set_device(0)
    result = globals()[sys.argv[1]]()
    if dist.get_rank() == 0:
        print("RESULT " + json.dumps(result), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
