"""What this machine reaches, in a tenth of a second each: for `tessera doctor`."""

import tessera as torch

from .timer import Timer


def _seconds(stmt, **names):
    timer = Timer(stmt, globals=names, num_threads=torch.get_num_threads())
    return timer.blocked_autorange(min_run_time=0.05).median


def _copy(device):
    """Bytes read and written in a second."""
    a = torch.ones(16 << 20, device=device)
    b = torch.empty_like(a)
    return 2 * 4 * a.numel() / _seconds("b.copy_(a)", a=a, b=b)


def _matmul(device, n, dtype):
    a = torch.ones(n, n, device=device, dtype=dtype)
    return 2 * n**3 / _seconds("a @ a", a=a)


def _transfer(pinned, up):
    host = torch.ones(8 << 20, pin_memory=pinned)
    device = torch.empty(8 << 20, device="cuda")
    to, source = (device, host) if up else (host, device)
    return 4 * host.numel() / _seconds("to.copy_(source)", to=to, source=source)


def lines():
    """Pairs: what, how much."""
    yield (
        "cpu",
        (
            f"copy {_copy('cpu') / 1e9:.1f} GB/s (read and written), "
            f"matmul 512 x 512 float32 {_matmul('cpu', 512, torch.float32) / 1e9:.0f} GFLOP/s, "
            f"{torch.get_num_threads()} threads"
        ),
    )
    for index in range(torch.cuda.device_count()):
        with torch.cuda.device(index):
            virtual = torch.cuda.get_device_properties(index).is_virtual
            n = 512 if virtual else 4096
            rates = (
                f"copy {_copy('cuda') / 1e9:.1f} GB/s (read and written), "
                f"matmul {n} x {n} float32 {_matmul('cuda', n, torch.float32) / 1e9:.0f} GFLOP/s"
            )
            if not virtual:
                rates += f", bfloat16 {_matmul('cuda', n, torch.bfloat16) / 1e12:.0f} TFLOP/s"
            yield f"cuda:{index}", rates
            parts = [
                f"{'pinned' if pinned else 'pageable'} "
                f"{_transfer(pinned, True) / 1e9:.1f} / {_transfer(pinned, False) / 1e9:.1f}"
                for pinned in (True, False)
            ]
            yield "", f"transfer to it / from it: {', '.join(parts)} GB/s"
