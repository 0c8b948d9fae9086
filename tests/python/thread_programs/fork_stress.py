"""Forks next to four computing threads; each child computes on the CPU and has to end.

    fork_stress.py FORKS DEVICE

Prints the number of children that hung and that failed; exits with 1 if there is one."""

import os
import random
import signal
import sys
import threading
import time

import tessera as torch
import tessera.nn.functional as F
from tessera import nn

FORKS, DEVICE = int(sys.argv[1]), sys.argv[2]
PATIENCE = 30.0  # seconds for one child
stopping = threading.Event()
failures = []
steps = [0, 0, 0, 0]


def until_stopped(index, work):
    try:
        while not stopping.is_set():
            work()
            steps[index] += 1
    except Exception as error:  # noqa: BLE001
        failures.append(error)


def random_numbers():
    x = torch.rand(40_000, device=DEVICE)
    y = torch.randn(100, device=DEVICE)
    torch.randperm(50_000)
    assert 0 <= x[:10].sum().item() + 0 * y.sum().item() <= 10
    if random.random() < 0.1:
        torch.manual_seed(3)


def deferred_views():
    x = torch.ones(64, 64, device=DEVICE)
    y = (x * 2 + 1).t()[1:33, ::2]
    y = y.reshape(-1)[:500] * 3 - 1
    left = x.exp()  # never read
    assert y.sum().item() == 500 * 8
    del left


class Training:
    def __init__(self, *layers):
        self.model = nn.Sequential(*layers).to(DEVICE)
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-3)
        self.shape = (8, 3, 12, 12) if isinstance(layers[0], nn.Conv2d) else (64, 80)

    def __call__(self):
        x = torch.randn(self.shape, device=DEVICE)
        loss = F.dropout(self.model(x), 0.3).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def child():
    """Computes what a worker of a loader and a small model need."""
    torch.set_num_threads(torch.get_num_threads())
    torch.cuda.is_available()
    torch.get_rng_state()
    assert torch.rand(40_000).max().item() <= 1
    x = (torch.arange(4096).float() * 2 + 1).view(64, 64).t()
    assert x.sum().item() == 4096.0**2
    model = nn.Linear(80, 90)
    for p in model.parameters():
        nn.init.normal_(p)
    F.dropout(model(torch.randn(64, 80)), 0.5).sum().backward()
    (torch.randn(70, 70) @ torch.randn(70, 70)).tolist()
    torch.fft.fft(torch.randn(60)).abs().sum().item()
    torch.linalg.inv(torch.eye(40, dtype=torch.float64) * 2).tolist()
    F.conv2d(torch.ones(2, 3, 12, 12), torch.ones(8, 3, 3, 3)).sum().item()
    assert shared.sum().item() == 3 * 300
    torch.utils.data.default_collate([torch.randperm(20) for _ in range(4)])


def one_fork():
    """None for a child that ended well, else what it did."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(int(PATIENCE) + 10)
            child()
            code = 0
        except BaseException as error:  # noqa: BLE001
            os.write(2, f"child: {type(error).__name__}: {error}\n".encode())
        os._exit(code)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return None if status == 0 else f"status {status}"
        time.sleep(0.0005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hung"


one = torch.ones(300)
work = [
    random_numbers,
    deferred_views,
    Training(nn.Linear(80, 90), nn.GELU(), nn.LayerNorm(90), nn.Linear(90, 80)),
    Training(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(800, 64), nn.Softmax(-1)),
]
threads = [
    threading.Thread(target=until_stopped, args=(i, w), daemon=True) for i, w in enumerate(work)
]
for thread in threads:
    thread.start()
while min(steps) == 0 and not failures:
    time.sleep(0.01)
results = []
for fork in range(FORKS):
    shared = one * 2 + 1  # not computed yet
    if fork % 2:
        results.append(one_fork())
    else:  # as a loader that a thread made
        parent = threading.Thread(target=lambda: results.append(one_fork()))
        parent.start()
        parent.join()
    time.sleep(random.random() * 0.002)
    if len([r for r in results if r]) > 5 or failures:
        break
stopping.set()
for thread in threads:
    thread.join(60)
stuck = sum(thread.is_alive() for thread in threads)
hung = results.count("hung")
failed = sum(r is not None for r in results) - hung
print(f"{len(results)} forks: {hung} hung, {failed} failed; steps {steps}; {stuck} threads stuck")
for error in failures:
    print(f"thread: {type(error).__name__}: {error}")
sys.stdout.flush()
os._exit(1 if hung or failed or stuck or failures else 0)
