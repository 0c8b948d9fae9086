"""Sorting on the device under test gives the CPU's bits: all dtypes, rows short and long, layouts,
ties, both zeros and NaN."""

import pytest

import tessera as torch

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()


def numbers(shape, dtype, seed=0):
    """Few different values, so that most have equals; of floats also NaN, infinity and -0."""
    torch.manual_seed(seed)
    dtype = getattr(torch, dtype)
    x = torch.randint(0, 40, shape)
    if dtype in (torch.bool, torch.uint8):
        return x.to(dtype)
    x = (x - 20).to(dtype)
    if dtype.is_floating_point:
        for i, special in enumerate([float("nan"), float("inf"), -float("inf"), -0.0]):
            chosen = torch.rand(shape) < 0.05 * (i + 1)
            x = torch.where(chosen, torch.full(shape, special, dtype=dtype), x)
    return x


def bits(t):
    """Equal only where all bits are: 0 is not -0, and NaN is NaN."""
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return t.cpu().contiguous().view(words[t.element_size()]).tolist()


def same(got, expected):
    for g, e in zip(got, expected):
        assert g.dtype == e.dtype and g.shape == e.shape
        assert bits(g) == bits(e)


def layouts(x, device):
    """Pairs of the same view of a tensor on the CPU and on the device."""
    y = x.to(device)
    yield x, y
    if x.dim() > 1:
        yield x.transpose(0, -1), y.transpose(0, -1)
        yield x[..., ::2], y[..., ::2]
        yield x[:1].expand(x.shape), y[:1].expand(x.shape)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort(dtype, descending, device):
    for shape in [
        (),
        (1,),
        (0, 3),
        (1, 31),
        (33, 5),
        (2, 257),
        (2, 1000),
        (1, 2048),
        (3, 2100),
        (1, 3100),
        (1, 16000),
    ]:
        x = numbers(shape, dtype)
        dim = -1 if x.dim() else 0
        same(torch.sort(x.to(device), dim, descending), torch.sort(x, dim, descending))


@pytest.mark.parametrize("shape", [(4, 70, 3), (2, 2100, 2), (40, 2, 33)])
def test_sort_layouts(shape, device):
    for x, y in layouts(numbers(shape, "float32"), device):
        for dim in range(3):
            same(torch.sort(y, dim), torch.sort(x, dim))


def test_sort_numbers_of_all_sizes(device):
    """Every digit of a key counts."""
    torch.manual_seed(1)
    for dtype, low in [(torch.int64, -(2**62)), (torch.int32, -(2**31)), (torch.int16, -(2**15))]:
        x = torch.randint(low, -low - 1, (3, 5000)).to(dtype)
        same(torch.sort(x.to(device)), torch.sort(x))
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(2, 7000, dtype=dtype) * torch.randn(2, 7000, dtype=dtype).exp()
        same(torch.sort(x.to(device), 1, True), torch.sort(x, 1, True))


def test_sort_digits_in_common(device):
    """Rows that differ in some digits only, or in none."""
    x = torch.full((4, 3000), 7, dtype=torch.int32)
    x[1] = torch.arange(3000, 0, -1)
    x[2] = torch.arange(3000, 0, -1) << 20
    x[3] = 7 + (torch.arange(3000) % 2 << 8)
    same(torch.sort(x.to(device)), torch.sort(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_topk(dtype, device):
    for shape, k in [((1,), 1), ((5, 700), 3), ((3, 600), 600), ((2, 3000), 50), ((1, 9000), 4000)]:
        x = torch.arange(shape[-1]).flip(0).expand(shape).contiguous()
        x = (numbers(shape, dtype) if shape[-1] > 600 else x).to(getattr(torch, dtype))
        for largest in (True, False):
            got, expected = torch.topk(x.to(device), k, -1, largest), torch.topk(x, k, -1, largest)
            assert bits(got.values) == bits(expected.values)
            assert bits(torch.gather(x, -1, got.indices.cpu())) == bits(got.values)
            if shape[-1] > 1000:
                assert got.indices.tolist() == expected.indices.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_of_each_line(dtype, device):
    """Long lines name the first (of mode: the last) of equals as the CPU does; in short ones which
    of them is named is open."""
    for shape, dim in [((1,), 0), ((3, 40), 1), ((300, 3), 0), ((2, 5000), 1), ((5000, 2), 0)]:
        x = numbers(shape, dtype)
        for f in (
            lambda t: torch.kthvalue(t, 1 + t.shape[dim] // 3, dim, keepdim=True),
            lambda t: torch.median(t, dim, keepdim=True),
            lambda t: torch.nanmedian(t, dim, keepdim=True),
            lambda t: torch.mode(t, dim, keepdim=True),
        ):
            got, expected = f(x.to(device)), f(x)
            if shape[dim] > 4096:
                same(got, expected)
                continue
            picked = torch.gather(x, dim, got.indices.cpu())
            a, b = got.values.cpu().reshape(-1), expected.values.reshape(-1)
            assert torch.equal(a.isnan(), b.isnan())
            assert torch.equal(a[~a.isnan()], b[~b.isnan()])
            assert bits(picked.reshape(-1)) == bits(got.values.reshape(-1))


def test_median_without_nan(device):
    x = torch.tensor([[4.0, 1.0, 3.0, 2.0], [float("nan"), 5.0, 1.0, 9.0], [float("nan")] * 4])
    y = x.to(device)
    assert torch.median(y[0]).item() == 2.0
    assert torch.median(y, 1).indices.tolist() == [3, 0, 0]
    assert torch.nanmedian(y, 1).indices.tolist() == [3, 1, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype, device):
    for shape in [(0,), (1,), (50,), (40, 30), (9000,)]:
        x = numbers(shape, dtype)
        y = x.to(device)
        for f in (torch.unique, torch.unique_consecutive):
            same(
                f(y, return_inverse=True, return_counts=True),
                f(x, return_inverse=True, return_counts=True),
            )
            same([f(y)], [f(x)])


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "float64"])
def test_unique_rows(dtype, device):
    for shape in [(1, 3), (700, 2), (33, 5, 2), (3000, 1)]:
        x = numbers(shape, dtype)
        x[x.shape[0] // 2 :] = x[: x.shape[0] - x.shape[0] // 2].clone()
        y = x.to(device)
        for f in (torch.unique, torch.unique_consecutive):
            for dim in range(x.dim()):
                got = f(y, dim=dim, return_inverse=True, return_counts=True)
                same(got, f(x, dim=dim, return_inverse=True, return_counts=True))


def test_unique_consecutive_of_complex_numbers(device):
    x = torch.tensor([1 + 1j, 1 + 1j, 1 + 2j, 2 + 2j, 2 + 2j, 1 + 1j])
    got = torch.unique_consecutive(x.to(device), return_counts=True)
    assert got[0].tolist() == [1 + 1j, 1 + 2j, 2 + 2j, 1 + 1j] and got[1].tolist() == [2, 1, 2, 1]
