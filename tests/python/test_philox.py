"""Random numbers of CUDA devices, real, emulated and virtual, against a reference in NumPy.

The reference follows the note in src/tessera/ops/philox.h; the generator itself is checked against
the published answers of Philox4x32-10.
"""

import math

import numpy as np
import pytest

import tessera as torch

MASK = np.uint64(0xFFFFFFFF)
COUNT = 1 << 18
# Standard deviations by which a mean may be off: less than one failure in a billion tests.
SIGMAS = 6.5


def philox(seed, counters):
    """The four words of each counter: an array of shape [len(counters), 4]."""
    counters = np.asarray(counters, dtype=np.uint64)
    c = [counters & MASK, counters >> np.uint64(32)]
    c += [np.zeros_like(counters), np.zeros_like(counters)]
    k = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ k[0], p1 & MASK, (p0 >> np.uint64(32)) ^ c[3] ^ k[1]]
        c.append(p0 & MASK)
        k = [(k[0] + np.uint64(0x9E3779B9)) & MASK, (k[1] + np.uint64(0xBB67AE85)) & MASK]
    return np.stack(c, -1)


def words32(seed, n):
    return philox(seed, np.arange((n + 3) // 4)).reshape(-1)[:n]


def words64(seed, n):
    block = philox(seed, np.arange((n + 1) // 2))
    wide = (block[:, ::2] << np.uint64(32)) | block[:, 1::2]
    return wide.reshape(-1)[:n]


def units(seed, n, dtype):
    """Numbers in [0, 1) as the dtype draws them."""
    if dtype == torch.float64:
        return (words64(seed, n) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    bits = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}[dtype]
    return (words32(seed, n) >> np.uint64(32 - bits)).astype(np.float64) * 2.0**-bits


def normals(seed, n, dtype):
    if dtype == torch.float64:
        w, shift, bits = words64(seed, n + n % 2), 11, 53
    else:
        w, shift, bits = words32(seed, n + n % 2), 8, 24
    u = (w >> np.uint64(shift)).astype(np.float64) * 2.0**-bits
    r, t = np.sqrt(-2 * np.log(u[::2] + 2.0**-bits)), 2 * np.pi * u[1::2]
    return np.stack([r * np.cos(t), r * np.sin(t)], -1).reshape(-1)[:n]


def test_reference_gives_the_published_answers():
    words = philox(0, [0])[0]
    assert [hex(int(w)) for w in words] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]


FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("seed", [0, 1, 0x123456789ABCDEF])
def test_uniform_values(accelerator, dtype, seed):
    n = 1003
    torch.manual_seed(seed)
    drawn = torch.rand(n, device=accelerator, dtype=dtype).double().cpu().numpy()
    assert np.array_equal(drawn, units(seed, n, dtype))
    torch.manual_seed(seed)
    wide = torch.empty(n, device=accelerator, dtype=dtype).uniform_(-2, 6).double().cpu().numpy()
    expected = torch.tensor(units(seed, n, dtype) * 8 - 2).to(dtype).double().numpy()
    assert np.array_equal(wide, expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("seed", [0, 7])
def test_normal_values(accelerator, dtype, seed):
    n = 1003
    steps = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}
    torch.manual_seed(seed)
    drawn = torch.randn(n, device=accelerator, dtype=dtype).double().cpu().numpy()
    assert np.allclose(drawn, normals(seed, n, dtype), rtol=steps[dtype], atol=steps[dtype])
    torch.manual_seed(seed)
    moved = torch.empty(n, device=accelerator, dtype=dtype).normal_(3, 0.5).double().cpu().numpy()
    expected = normals(seed, n, dtype) * 0.5 + 3
    assert np.allclose(moved, expected, rtol=steps[dtype], atol=steps[dtype])


def test_bernoulli_and_integer_values(accelerator):
    n = 1003
    torch.manual_seed(3)
    drawn = torch.empty(n, device=accelerator).bernoulli_(0.3).cpu().numpy()
    assert np.array_equal(drawn, words32(3, n).astype(np.float64) * 2.0**-32 < 0.3)
    torch.manual_seed(3)
    drawn = torch.randint(-5, 90, (n,), device=accelerator).cpu().numpy()
    assert np.array_equal(drawn, (words32(3, n) % np.uint64(95)).astype(np.int64) - 5)


def test_draws_do_not_share_words(accelerator):
    torch.manual_seed(11)
    first, second = (torch.rand(1001, device=accelerator).cpu().numpy() for _ in range(2))
    both = units(11, 2008, torch.float32)  # 1001 elements take 251 blocks of four words
    assert np.array_equal(first, both[:1001]) and np.array_equal(second, both[1004:2005])


def check_moments(x, mean, variance, fourth):
    """`fourth` is the fourth central moment, which the error of the variance depends on."""
    x = x.double().cpu().numpy()
    assert np.isfinite(x).all()
    assert abs(x.mean() - mean) < SIGMAS * math.sqrt(variance / x.size)
    error = math.sqrt((fourth - variance**2) / x.size)
    assert abs(((x - mean) ** 2).mean() - variance) < SIGMAS * error


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_moments_and_ranges(device, dtype):
    torch.manual_seed(5)
    made = {"device": device, "dtype": dtype}
    x = torch.rand(COUNT, **made)
    check_moments(x, 0.5, 1 / 12, 1 / 80)
    assert 0 <= x.min().item() < 1e-4 and 1 - 1e-4 < x.max().item() < 1
    x = torch.empty(COUNT, **made).uniform_(-3, 5)
    check_moments(x, 1, 64 / 12, 4096 / 80)
    assert -3 <= x.min().item() < -2.999 and 4.999 < x.max().item() <= 5
    check_moments(torch.randn(COUNT, **made), 0, 1, 3)
    x = torch.empty(COUNT, **made).normal_(2, 3)
    check_moments(x, 2, 9, 243)
    assert x.max().item() > 2 + 3 * 3.9 and x.min().item() < 2 - 3 * 3.9
    p = 0.2
    fourth = p * (1 - p) * (1 - 3 * p * (1 - p))
    check_moments(torch.empty(COUNT, **made).bernoulli_(p), p, p * (1 - p), fourth)
    check_moments(torch.bernoulli(torch.full((COUNT,), p, **made)), p, p * (1 - p), fourth)
    check_moments(torch.empty(COUNT, **made).exponential_(2.0), 0.5, 0.25, 9 / 16)
    mask = torch.nn.functional.dropout(torch.ones(COUNT, **made), 0.25)
    assert set(mask.unique().tolist()) == {0.0, torch.tensor(1 / 0.75, dtype=dtype).item()}
    check_moments((mask == 0).to(dtype), 0.25, 0.1875, 0.25 * 0.75 * (1 - 3 * 0.1875))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_halves_are_finite_and_in_range(device, dtype):
    torch.manual_seed(6)
    x = torch.rand(COUNT, device=device, dtype=dtype)
    assert x.isfinite().all().item() and 0 <= x.min().item() and x.max().item() < 1
    x = torch.randn(COUNT, device=device, dtype=dtype).float()
    assert x.isfinite().all().item() and abs(x.mean().item()) < SIGMAS / math.sqrt(COUNT) + 1e-3
    assert abs(x.var().item() - 1) < 0.02


def test_normals_are_finite_where_the_uniform_is_zero(accelerator):
    """A word of zeros gives the largest normal number, and not an infinite one."""
    torch.manual_seed(0)
    x = torch.randn(1 << 22, device=accelerator)
    assert x.isfinite().all().item() and x.abs().max().item() < 5.8
    w = words32(0, 1 << 22)[::2] >> np.uint64(8)
    assert w.min() < 64  # the sample has numbers close to zero
