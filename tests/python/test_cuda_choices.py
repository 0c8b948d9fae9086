"""Permutations, choices and Poisson numbers of a device follow the rules of tessera/ops/philox.h,
written down here a second time; and they have the distributions they should have."""

import math

import pytest

import tessera as torch

SEED = 0x123456789ABCDEF


def block(counter, stream=0, seed=SEED):
    c = [counter & 0xFFFFFFFF, counter >> 32, stream, 0]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def word64(i, offset=0):
    b = block(offset + i // 2)
    return b[2 * (i % 2)] << 32 | b[2 * (i % 2) + 1]


def unit(i, offset=0):
    return (word64(i, offset) & (2**53 - 1)) * 2.0**-53


def permuted(n, offset=0):
    return sorted(range(n), key=lambda i: (word64(i, offset), i))


@pytest.mark.parametrize("n", [1, 2, 33, 1000, 2500])
def test_randperm(n, accelerator):
    torch.manual_seed(SEED)
    first = torch.randperm(n, device=accelerator)
    assert first.tolist() == permuted(n)
    second = torch.randperm(n, device=accelerator, dtype=torch.int32)
    assert second.tolist() == permuted(n, (n + 1) // 2) and second.dtype == torch.int32


def test_randperm_dtypes(device):
    for dtype in (torch.uint8, torch.int16, torch.float32, torch.float16, torch.float64):
        p = torch.randperm(100, device=device, dtype=dtype)
        assert p.dtype == dtype and sorted(p.tolist()) == list(range(100))
    assert torch.randperm(0, device=device).tolist() == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_multinomial_without_replacement(dtype, accelerator):
    weights = torch.tensor([[0.5, 0.0, 2.0, 1.0, 0.25], [1.0, 1.0, 3.0, 0.5, 0.0]], dtype=dtype)
    keys = [
        [w / -math.log1p(-unit(5 * r + j)) for j, w in enumerate(row)]
        for r, row in enumerate(weights.tolist())
    ]
    for count in (1, 3):
        torch.manual_seed(SEED)
        got = torch.multinomial(weights.to(accelerator), count)
        assert got.tolist() == [sorted(range(5), key=lambda j: -row[j])[:count] for row in keys]


def test_multinomial_with_replacement(accelerator):
    weights = [[0.5, 0.0, 2.0, 1.0], [0.0, 1.0, 0.0, 0.0]]
    torch.manual_seed(SEED)
    got = torch.multinomial(torch.tensor(weights, device=accelerator), 50, replacement=True)
    for r, row in enumerate(got.tolist()):
        for k, chosen in enumerate(row):
            u = unit(50 * r + k) * sum(weights[r])
            assert sum(weights[r][:chosen]) <= u <= sum(weights[r][: chosen + 1])


def test_multinomial_long_rows(device):
    """Only what has a weight is drawn, each at most once without replacement, in any size."""
    weights = torch.zeros(2, 5000)
    weights[0, 100:200] = 1.0
    weights[1, ::7] = torch.rand(715) + 0.1
    for count, replacement in [(1, False), (100, False), (300, True)]:
        drawn = torch.multinomial(weights.to(device), count, replacement)
        assert (torch.gather(weights, 1, drawn.cpu()) > 0).all().item()
        if not replacement:
            assert all(len(set(row)) == count for row in drawn.tolist())


def test_multinomial_frequencies(device):
    torch.manual_seed(3)
    drawn = torch.multinomial(torch.tensor([1.0, 2.0, 0.0, 1.0], device=device), 4000, True)
    counts = [(drawn == i).sum().item() for i in range(4)]
    assert counts[2] == 0 and abs(counts[1] - 2000) < 160 and abs(counts[0] - 1000) < 140
    one = torch.multinomial(torch.tensor([[1.0, 3.0]], device=device).expand(2000, 2), 1)
    assert abs(one.sum().item() - 1500) < 100


def test_draws_do_not_repeat(accelerator):
    """A second draw does not begin inside the words of the first."""
    weights = torch.ones(64, device=accelerator)
    a, b = (torch.multinomial(weights, 32).tolist() for _ in range(2))
    assert sum(x == y for x, y in zip(a, b)) < 8
    x = torch.empty(64, device=accelerator, dtype=torch.float64)
    first = set(x.log_normal_().tolist())
    assert not first & set(x.log_normal_().tolist())


@pytest.mark.parametrize(
    "weights, words",
    [
        ([0.0, 0.0], "sum of probabilities"),
        ([1.0, -1.0], "entry < 0"),
        ([1.0, float("nan")], "`nan`"),
        ([1.0, float("inf")], "`inf`"),
    ],
)
@pytest.mark.parametrize("count, replacement", [(1, False), (2, False), (2, True)])
def test_wrong_weights(weights, words, count, replacement, device):
    with pytest.raises(RuntimeError, match=words):
        torch.multinomial(torch.tensor(weights, device=device), count, replacement).tolist()


def poisson_below_ten(rate, i):
    units = iter(
        ((b[k] << 32 | b[k + 1]) & (2**53 - 1)) * 2.0**-53
        for j in range(100)
        for b in [block(i, 1 + j)]
        for k in (0, 2)
    )
    n, product = 0, next(units)
    while product > math.exp(-rate):
        product *= next(units)
        n += 1
    return n


def test_poisson(accelerator):
    torch.manual_seed(SEED)
    rates = torch.tensor([[0.5, 3.0, 9.0, 0.0], [2.0, 7.5, 1.0, 4.0]])
    got = torch.poisson(rates.to(accelerator).t()).tolist()
    flat = rates.t().reshape(-1).tolist()
    expected = [poisson_below_ten(r, i) if r else 0 for i, r in enumerate(flat)]
    assert [x for row in got for x in row] == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("rate", [0.25, 4.0, 30.0])
def test_poisson_moments(rate, dtype, device):
    torch.manual_seed(5)
    x = torch.poisson(torch.full((4000,), rate, device=device, dtype=dtype)).cpu().double()
    mean = x.mean().item()
    assert abs(mean - rate) < 5 * math.sqrt(rate / 4000) + rate * 0.005
    assert abs(((x - mean) ** 2).mean().item() / rate - 1) < 0.15


def test_wrong_rate(device):
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        torch.poisson(torch.tensor([1.0, -1.0], device=device)).tolist()


def test_log_normal(accelerator):
    torch.manual_seed(SEED)
    got = torch.empty(40, device=accelerator, dtype=torch.float64).log_normal_(0.5, 0.25).tolist()
    for i, x in enumerate(got):
        r, theta = math.sqrt(-2 * math.log1p(-unit(2 * i + 1))), 2 * math.pi * unit(2 * i)
        assert math.isclose(x, math.exp(r * math.cos(theta) * 0.25 + 0.5), rel_tol=1e-12)
