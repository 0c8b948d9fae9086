"""Tensors from nothing: counts, dtypes, layouts, and what is refused."""

import math

import pytest

import tessera as torch


def test_arange_counts_as_pytorch():
    assert torch.arange(5).dtype == torch.int64 and torch.arange(5.0).dtype == torch.float32
    assert torch.arange(0, 1, 0.1).shape == (10,)
    assert torch.arange(2**62, 2**62 + 3).tolist() == [2**62, 2**62 + 1, 2**62 + 2]
    assert torch.arange(-(2**63), -(2**63) + 5, 2).tolist() == [-(2**63) + k for k in (0, 2, 4)]
    assert torch.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert torch.arange(0.5, 3.5, dtype=torch.int64).tolist() == [0, 1, 2]
    assert torch.arange(torch.tensor(3)).tolist() == [0, 1, 2]
    assert torch.arange(0, 6, 2, dtype=torch.int8).tolist() == [0, 2, 4]
    out = torch.empty(0, dtype=torch.float64)
    assert torch.arange(3, out=out) is out and out.tolist() == [0, 1, 2]
    for args, words in (
        ((0, 3, 0), "step must be nonzero"),
        ((0, 3, -2), "inconsistent with step sign"),
        ((0, math.inf, 2), "unsupported range: 0 -> inf"),
        ((0, math.nan), "unsupported range"),
    ):
        with pytest.raises(RuntimeError, match=words):
            torch.arange(*args)
    with pytest.raises(NotImplementedError):
        torch.arange(3, dtype=torch.complex64)


def test_long_ranges_are_whole():
    n = 100_003
    for dtype in (torch.int64, torch.float64, torch.int32):
        x = torch.arange(n, dtype=dtype)
        assert x[[0, 1, 511, 512, 65536, n - 1]].tolist() == [0, 1, 511, 512, 65536, n - 1]
        assert x.sum().item() == n * (n - 1) // 2 or dtype == torch.int32
    x = torch.linspace(0, 1, n, dtype=torch.float64)
    assert x[0] == 0 and x[-1] == 1 and abs(x[n // 3].item() - (n // 3) / (n - 1)) < 1e-15


def test_spaces():
    assert torch.linspace(3, 10, 5).tolist() == [3, 4.75, 6.5, 8.25, 10]
    assert torch.linspace(0, 10, 4, dtype=torch.int64).tolist() == [0, 3, 6, 10]
    assert torch.linspace(torch.tensor(0.0), torch.tensor(1.0), 3).tolist() == [0, 0.5, 1]
    assert torch.linspace(0, 1j, 3).tolist() == [0, 0.5j, 1j]
    assert torch.logspace(0, 2, 3, base=2).tolist() == [1, 2, 4]
    assert torch.logspace(0.7, 3, 1, dtype=torch.int64).tolist() == [5]
    with pytest.raises(RuntimeError, match="number of steps must be non-negative"):
        torch.linspace(0, 1, -1)
    with pytest.raises(RuntimeError, match="can't be safely cast to passed dtype Float"):
        torch.linspace(0, 1j, 3, dtype=torch.float32)
    with pytest.raises(RuntimeError, match="only supports 0-dimensional start and end tensors"):
        torch.logspace(torch.zeros(2), torch.zeros(1), 2)


def test_options_are_read_everywhere():
    x = torch.zeros(2, 3)
    for made in (
        torch.empty(
            2, dtype=torch.float64, layout=torch.strided, pin_memory=False, requires_grad=True
        ),
        torch.zeros((2,), dtype=torch.float64, requires_grad=True),
        torch.full((2,), 1.5, dtype=torch.float64, requires_grad=True),
        torch.eye(2, dtype=torch.float64, requires_grad=True),
        torch.arange(2, dtype=torch.float64, requires_grad=True),
        torch.linspace(0, 1, 2, dtype=torch.float64, requires_grad=True),
        torch.ones_like(x, dtype=torch.float64, requires_grad=True),
        torch.full_like(x, 3, dtype=torch.float64, requires_grad=True),
        x.new_zeros(2, dtype=torch.float64, requires_grad=True),
        x.new_full((2,), 3, dtype=torch.float64, requires_grad=True),
        x.new_empty_strided((2, 2), (1, 2), dtype=torch.float64, requires_grad=True),
        torch.empty_permuted((2, 3), (1, 0), dtype=torch.float64, requires_grad=True),
        torch.hann_window(4, dtype=torch.float64, requires_grad=True),
        torch.signal.windows.kaiser(4, dtype=torch.float64, requires_grad=True),
    ):
        assert made.dtype == torch.float64 and made.requires_grad and made.is_leaf
        assert made._version == 0
    with pytest.raises(RuntimeError, match="floating point and complex dtype"):
        torch.zeros(2, dtype=torch.int64, requires_grad=True)
    assert torch.zeros(2, 3, device="meta").shape == (2, 3)
    assert torch.arange(4, device="meta").shape == (4,)
    assert torch.tril_indices(3, 3, dtype=torch.int32).dtype == torch.int32
    assert torch.scalar_tensor(3).dtype == torch.float32
    assert torch.full((2,), True).dtype == torch.bool
    assert torch.full((2,), 1j).dtype == torch.complex64


def test_out_gives_the_dtype():
    for make in (
        lambda out: torch.zeros(2, 2, out=out),
        lambda out: torch.ones((2, 2), out=out),
        lambda out: torch.full((2, 2), 3, out=out),
        lambda out: torch.eye(2, out=out),
    ):
        out = torch.empty(0, dtype=torch.int32)
        assert make(out) is out and out.dtype == torch.int32 and out.shape == (2, 2)


def test_likes_keep_the_layout():
    x = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert x.stride() == (60, 1, 15, 3)
    for made in (torch.empty_like(x), torch.zeros_like(x), x.clone(), x.double(), x.to(torch.int8)):
        assert made.stride() == x.stride()
        assert made.is_contiguous(memory_format=torch.channels_last) and not made.is_contiguous()
    assert torch.ones_like(x, memory_format=torch.contiguous_format).is_contiguous()
    assert torch.empty_like(x[:, ::2]).stride() == (40, 1, 10, 2)  # with gaps: by its format
    assert torch.empty_like(torch.zeros(3, 1).expand(3, 4)).stride() == (4, 1)
    assert torch.empty_like(torch.zeros(3, 4).t()).stride() == (1, 4)
    assert torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride() == x.stride()
    y = torch.zeros(2, 3, 2, 4, 5)
    assert y.contiguous(memory_format=torch.channels_last_3d).stride()[1] == 1
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        torch.zeros(2, 3).to(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported"):
        x.contiguous(memory_format=torch.preserve_format)


def test_strides_that_are_refused():
    with pytest.raises(RuntimeError, match="mismatch in length of strides and shape"):
        torch.empty_strided((2, 3), (1,))
    with pytest.raises(RuntimeError, match="Negative strides"):
        torch.empty_strided((2,), (-1,))
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.zeros(2, -1)
    with pytest.raises(RuntimeError, match="Duplicate dim not allowed"):
        torch.empty_permuted((2, 3), (0, 0))
    assert torch.empty_strided((2, 3), (0, 1)).stride() == (0, 1)


def test_windows_refuse_and_are_symmetric():
    w = torch.signal.windows
    for make in (
        w.hann,
        w.hamming,
        w.blackman,
        w.bartlett,
        w.nuttall,
        w.cosine,
        w.kaiser,
        w.gaussian,
    ):
        x = make(7, dtype=torch.float64)
        assert x.tolist() == pytest.approx(x.flip(0).tolist())
        assert make(1).tolist() == [1] and make(0).shape == (0,)
        assert make(6, sym=False).tolist() == pytest.approx(make(7)[:6].tolist(), abs=1e-6)
    assert torch.hann_window(6).tolist() == pytest.approx(torch.hann_window(7, False)[:6].tolist())
    with pytest.raises(ValueError, match="requires non-negative window length, got M=-1"):
        w.hann(-1)
    with pytest.raises(ValueError, match="Coefficients cannot be empty"):
        w.general_cosine(3, a=[])
    with pytest.raises(RuntimeError, match="expects floating point dtypes"):
        torch.hann_window(3, dtype=torch.int64)
