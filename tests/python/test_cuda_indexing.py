"""Indexing, masks, cat and losses by class: what the device gives is what the CPU gives."""

import pytest

import tessera as torch

F = torch.nn.functional
DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]
NUMBERS = DTYPES[1:]


def numbers(shape, dtype, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 7, shape, generator=g) - (0 if dtype == torch.uint8 else 3)
    if dtype.is_complex:
        return torch.complex(x.double(), x.double().flip(0) if x.dim() else x.double()).to(dtype)
    return x.to(dtype)


def indices(shape, size, seed=0):
    return torch.randint(0, size, shape, generator=torch.Generator().manual_seed(seed))


def layouts(x):
    """A matrix as it is, transposed, a slice of a wider one, every other column, expanded."""
    yield x
    yield x.t().contiguous().t()
    yield torch.cat([x, x], 1)[:, 1 : 1 + x.shape[1]]
    yield torch.cat([x, x], 1)[:, ::2]
    yield x[:, :1].expand(x.shape)


def same(f, device, *given, exact=True):
    """Bit for bit, or (of sums of whole numbers in halves) nearly."""
    want = f(*given)
    got = f(*(t.to(device) if isinstance(t, torch.Tensor) else t for t in given))
    for a, b in zip(want, got) if isinstance(want, tuple | list) else [(want, got)]:
        assert a.shape == b.shape and a.dtype == b.dtype
        b = b.cpu()
        if exact:
            assert torch.equal(a, b)
        else:
            assert torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)


def keeps_layout(t, device):
    """On the device with the same strides."""
    base = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage())
    return base.to(device).as_strided(t.shape, t.stride(), t.storage_offset())


# ---- cat ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_cat(dtype, device):
    a, b = numbers((5, 33), dtype), numbers((5, 4), dtype, 1)
    same(lambda *x: torch.cat(x, 1), device, a, b, a)
    same(lambda *x: torch.cat(x, 0), device, a, a[:1], a[:0])


@pytest.mark.parametrize("size", [1, 31, 64, 1000])
def test_cat_of_many(size, device):
    parts = [numbers((3, size + i % 2), torch.float32, i) for i in range(300)]
    same(lambda *x: torch.cat(x, 1), device, *parts)
    same(lambda *x: torch.cat([t.flatten() for t in x]), device, *parts)


def test_cat_of_layouts(device):
    for x in layouts(numbers((6, 8), torch.float32)):
        y = keeps_layout(x, device)
        for dim in (0, 1):
            assert torch.equal(torch.cat([y, y], dim).cpu(), torch.cat([x, x], dim))


# ---- reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_and_elements(dtype, device):
    x, i = numbers((50, 64), dtype), indices((1000,), 50)
    same(lambda t, i: t[i], device, x, i)
    same(lambda t, i: t[:, i], device, x, i)
    same(lambda t, i: t[i, -1 - i], device, x, i)
    same(lambda t, i: torch.index_select(t, 1, i), device, x, i)
    same(lambda t, i: torch.take(t, i), device, x, i)
    same(lambda t, i: torch.gather(t, 0, i.reshape(100, 10)), device, x, i)
    same(lambda t, i: torch.gather(t, 0, i[:, None].expand(-1, 64)), device, x, i)


@pytest.mark.parametrize("rows", [1, 31, 33, 1000])
def test_reading_of_layouts(rows, device):
    i = indices((rows,), 30)
    for x in layouts(numbers((30, 17), torch.float32)):
        y, j = keeps_layout(x, device), i.to(device)
        assert torch.equal(y[j].cpu(), x[i])
        assert torch.equal(y[j, j % 17].cpu(), x[i, i % 17])
        wide = indices((30, rows % 50), 17)
        got = torch.take_along_dim(y, wide.to(device), 1)
        assert torch.equal(got.cpu(), torch.take_along_dim(x, wide, 1))


def test_indices_of_several_shapes(device):
    x, i = numbers((6, 5, 4, 3), torch.float32), indices((7, 1), 4)
    same(lambda t, i: t[i, :, i.t() % 4], device, x, i)
    same(lambda t, i: t[..., i, i[0] % 3], device, x, i)
    same(lambda t, i: t[i[:0]], device, x, i)
    same(lambda t, i: t[i[0, 0]], device, x, i)
    same(lambda t: t[:, [1, 2], [0, -1], [0, 0]], device, x)


def test_narrow_indices(device):
    x, i = numbers((9, 4), torch.float32), indices((20,), 9).int()
    same(lambda t, i: torch.index_select(t, 0, i), device, x, i)
    same(lambda t, i: t.index_add(0, i, t[:1].expand(20, 4)), device, x, i)


# ---- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_assigning(dtype, device):
    x, v = numbers((50, 64), dtype), numbers((20, 64), dtype, 1)
    i = torch.randperm(50, generator=torch.Generator().manual_seed(0))[:20]

    def put(t, i, v):
        t = t.clone()
        t[i] = v
        t.t()[i % 64] = v[:, :50]
        return t

    same(lambda t, i, v: t.index_put((i,), v), device, x, i, v)
    same(lambda t, i, v: t.index_copy(0, i, v), device, x, i, v)
    same(lambda t, i, v: t.index_fill(1, i, 1), device, x, i, v)
    same(lambda t, i, v: t.scatter(0, i[:, None].expand(-1, 64), v), device, x, i, v)
    same(put, device, x, i, v)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("always", [False, True])
def test_adding(dtype, always, device):
    torch.use_deterministic_algorithms(always)
    try:
        # Whole numbers and few of them: no order is rounded.
        x, v, i = numbers((20, 64), dtype), numbers((30, 64), dtype, 1), indices((30,), 20)
        same(lambda t, i, v: t.index_add(0, i, v), device, x, i, v)
        same(lambda t, i, v: t.index_put((i, i), v[:, 0], accumulate=True), device, x, i, v)
        same(lambda t, i, v: t.scatter_add(0, i.reshape(5, 6), v[:5, :6]), device, x, i, v)
        same(lambda t, i, v: t.t().contiguous().index_add(1, i, v.t()), device, x, i, v)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("always", [False, True])
def test_reducing(reduce, always, device):
    torch.use_deterministic_algorithms(always)
    try:
        for dtype in (torch.int16, torch.int64, torch.bfloat16, torch.float32, torch.float64):
            x, v = numbers((20, 33), dtype) + 1, numbers((7, 33), dtype, 1) + 2
            i = indices((7, 33), 20)
            for whole in (True, False):
                same(
                    lambda t, i, v: t.scatter_reduce(0, i, v, reduce, include_self=whole),
                    device,
                    x,
                    i,
                    v,
                    exact=reduce != "mean",
                )
        v = torch.tensor([1.0, float("nan"), 3.0, -0.0])
        same(
            lambda t, i, v: t.scatter_reduce(0, i, v, reduce),
            device,
            torch.ones(3),
            torch.tensor([0, 0, 1, 1]),
            v,
            exact=False,
        )
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.complex64])
def test_many_values_of_few_rows(dtype, device):
    """Runs of all lengths within and across the pieces that threads combine."""
    n = 20000
    i = (torch.arange(n) % 1000) ** 2 // 40000
    v = numbers((n, 64), torch.float64).to(dtype)
    want = torch.zeros(26, 64, dtype=torch.complex128 if dtype.is_complex else torch.float64)
    want = want.index_add(0, i, v.to(want.dtype))
    torch.use_deterministic_algorithms(True)
    try:
        got = torch.zeros(26, 64, dtype=dtype, device=device)
        got = got.index_add(0, i.to(device), v.to(device))
    finally:
        torch.use_deterministic_algorithms(False)
    if dtype == torch.float16 and device == "cpu":
        return  # rounds each time
    assert torch.equal(got.cpu(), want.to(dtype))


def test_same_bits_and_the_last_one_stays(device):
    torch.use_deterministic_algorithms(True)
    try:
        g = torch.Generator().manual_seed(0)
        v, i = torch.randn(5000, generator=g).to(device), indices((5000,), 13).to(device)
        x = torch.zeros(13, device=device)
        first = x.scatter_add(0, i, v)
        assert all(torch.equal(first, x.scatter_add(0, i, v)) for _ in range(3))
        put = x.index_put((i,), v).cpu()
        for k in range(13):
            assert put[k] == v.cpu()[i.cpu() == k][-1]
        assert torch.equal(x.scatter(0, i, v).cpu(), put)
    finally:
        torch.use_deterministic_algorithms(False)


# ---- masks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 31, 33, 1000, 8192, 100_000])
def test_masks(size, device):
    x = numbers((size,), torch.float32)
    same(lambda t: t.nonzero(), device, x)
    same(lambda t: t[t > 1], device, x)
    same(
        lambda t: t.masked_scatter(t > 1, torch.arange(size, dtype=t.dtype, device=t.device)),
        device,
        x,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_masks_of_dtypes(dtype, device):
    x = numbers((100, 91), dtype)
    mask = x.bool() if dtype.is_complex else x > 0
    same(lambda t: torch.nonzero(t), device, x)
    same(lambda t, m: t[m], device, x, mask)
    same(lambda t, m: torch.masked_select(t, m[0]), device, x, mask)
    same(lambda t, m: t.masked_scatter(m, t.flatten()), device, x, mask)
    same(lambda t, m: torch.where(m), device, x, mask)


def test_masks_of_layouts(device):
    for x in layouts(numbers((50, 40), torch.int16)):
        y = keeps_layout(x, device)
        assert torch.equal(y.nonzero().cpu(), x.nonzero())
        assert torch.equal(y[y > 0].cpu(), x[x > 0])
        if x.stride(1) != 0:
            y[y > 1] = -y[y > 1]
            x[x > 1] = -x[x > 1]
            assert torch.equal(y.cpu(), x)


def test_nonzero_of_odd_values(device):
    x = torch.tensor([0.0, -0.0, float("nan"), 1e-40, float("inf")])
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        same(torch.nonzero, device, x.to(dtype))
    same(torch.nonzero, device, torch.tensor(3.0))


# ---- losses and tables -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(7, 5), (300, 64), (9, 131), (3, 5, 4, 2), (2, 3, 20, 30)])
def test_nll_loss(dtype, reduction, shape, device):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    target = indices((shape[0], *shape[2:]), shape[1])
    weight = torch.arange(1, shape[1] + 1).to(dtype) / 8

    def both(x, target, weight):
        x = x.detach().requires_grad_()
        loss = F.nll_loss(x, target, weight, ignore_index=2, reduction=reduction)
        loss.sum().backward()
        return loss.detach().float(), x.grad

    want, got = both(x, target, weight), both(x.to(device), target.to(device), weight.to(device))
    near = {"rtol": 2e-3, "atol": 2e-3} if dtype == torch.float16 else {"rtol": 1e-5, "atol": 1e-6}
    for a, b in zip(want, got):
        assert torch.allclose(a, b.cpu(), **near)


def test_embedding_gradient_and_norm(device):
    table, i = torch.randn(40, 32, generator=torch.Generator().manual_seed(0)), indices((3, 50), 40)

    def gradient(t, i):
        t = t.detach().requires_grad_()
        (F.embedding(i, t, padding_idx=3) * torch.arange(32, device=t.device)).sum().backward()
        return t.grad

    same(gradient, device, table, i)
    for p in (1.0, 2.0, 3.5, float("inf")):
        same(
            lambda t, i: torch.embedding_renorm_(t.clone(), i[0], 2.0, p),
            device,
            table,
            i,
            exact=False,
        )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_embedding_bag(mode, dtype, device):
    # Ties, NaN and empty bags among them.
    table, i = numbers((40, 33), dtype), indices((333,), 40)
    table[7, :5] = float("nan")
    offsets = torch.tensor([0, 0, 10, 11, 11, 300, 333, 333])

    def bags(i, t, offsets):
        return [
            F.embedding_bag(i, t, offsets, mode=mode),
            F.embedding_bag(i, t, offsets, mode=mode, include_last_offset=True),
            F.embedding_bag(i, t, offsets, mode=mode, padding_idx=3),
            F.embedding_bag(i[:300].reshape(30, 10), t, mode=mode),
        ]

    for a, b in zip(
        bags(i, table, offsets), bags(i.to(device), table.to(device), offsets.to(device))
    ):
        near = {"rtol": 1e-2} if dtype == torch.bfloat16 else {}
        assert torch.allclose(a, b.cpu(), equal_nan=True, **near)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_segments(reduce, device):
    x, lengths = numbers((700, 3), torch.float32), torch.tensor([1, 0, 300, 31, 33, 335])
    same(lambda x, n: torch.segment_reduce(x, reduce, lengths=n), device, x, lengths, exact=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc_loss(dtype, zero_infinity, device):
    x = torch.randn(40, 5, 9, generator=torch.Generator().manual_seed(0)).to(dtype)
    targets = torch.tensor(
        [[1, 2, 2, 3, 8], [4, 4, 5, 1, 1], [1, 1, 1, 1, 1], [7, 6, 5, 4, 3], [0, 3, 0, 3, 1]]
    )

    def both(x, targets):
        x = x.detach().requires_grad_()
        loss = F.ctc_loss(
            x.log_softmax(2),
            targets,
            (40, 38, 8, 20, 40),
            (5, 4, 5, 0, 5),
            reduction="none",
            zero_infinity=zero_infinity,
        )
        loss.sum().backward()
        return loss.detach(), x.grad

    same(both, device, x, targets, exact=False)


def test_ctc_loss_of_long_targets(device):
    x = torch.randn(600, 1, 20, generator=torch.Generator().manual_seed(0)).double()
    targets = indices((1, 520), 19) + 1

    def both(x, targets):
        x = x.detach().requires_grad_()
        loss = F.ctc_loss(x.log_softmax(2), targets, (600,), (520,), reduction="sum")
        loss.backward()
        return loss.detach(), x.grad

    same(both, device, x, targets, exact=False)


@pytest.mark.parametrize("size", [1, 5, 40])
def test_permutations(size, device):
    pivots = torch.stack([torch.arange(size).flip(0) + 1, torch.arange(size) // 2 + 1]).int()
    lu = torch.randn(2, size, size, generator=torch.Generator().manual_seed(0))
    for dtype in (torch.float32, torch.float64, torch.complex64):
        same(lambda m, p: torch.lu_unpack(m, p, unpack_data=False)[0], device, lu.to(dtype), pivots)


# ---- wrong indices -----------------------------------------------------------------------------


def after(device, f):
    """What f raises, at once or when the device has done its work."""
    f()
    if device != "cpu":
        torch.cuda.synchronize()


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda x, i: x[i], IndexError, "index 7 is out of bounds for dimension 0 with size 5"),
        (
            lambda x, i: x[:, -i],
            IndexError,
            "index -7 is out of bounds for dimension 1 with size 4",
        ),
        (
            lambda x, i: x.index_select(0, i),
            IndexError,
            "index out of range in self: index 7 in dimension 0 with size 5",
        ),
        (
            lambda x, i: x.index_add(0, i, x[:2]),
            IndexError,
            "index out of range in self: index 7 in dimension 0 with size 5",
        ),
        (
            lambda x, i: x.index_copy(1, i, x[:, :2]),
            IndexError,
            r"index_copy_\(\): index 7 is out of bounds for dimension 1 with size 4",
        ),
        (
            lambda x, i: x.gather(1, i[:, None]),
            RuntimeError,
            "index 7 is out of bounds for dimension 1 with size 4",
        ),
        (
            lambda x, i: x.scatter(1, i[:, None], 1.0),
            RuntimeError,
            "index 7 is out of bounds for dimension 1 with size 4",
        ),
        (
            lambda x, i: x.take(i * 3),
            IndexError,
            "tried to access index 21 on a tensor of 20 elements",
        ),
        (lambda x, i: F.nll_loss(x[:2], i), IndexError, "Target 7 is out of bounds"),
        (
            lambda x, i: F.ctc_loss(x[:, None, :], i[None], (5,), (2,)),
            IndexError,
            r"ctc_loss\(\): target 7 is not a class below 4",
        ),
        (
            lambda x, i: torch.embedding_renorm_(x, i, 1.0, 2.0),
            IndexError,
            "index 7 in dimension 0",
        ),
    ],
)
@pytest.mark.parametrize("always", [False, True])
def test_wrong_indices(f, error, words, always, device):
    x, i = torch.ones(5, 4, device=device), torch.tensor([1, 7], device=device)
    torch.use_deterministic_algorithms(always)
    try:
        with pytest.raises(error, match=words):
            after(device, lambda: f(x, i))
    finally:
        torch.use_deterministic_algorithms(False)
