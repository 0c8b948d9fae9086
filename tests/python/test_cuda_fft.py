"""Fourier transforms on the device against the CPU's: layouts, dimensions, lengths, norms."""

import itertools

import pytest

import tessera as torch

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]


def close(got, expected):
    tolerance = 1e-4 if expected.dtype in (torch.float32, torch.complex64) else 1e-10
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    size = max(1.0, expected.abs().max().item()) if expected.numel() else 1.0
    torch.testing.assert_close(got.cpu() / size, expected / size, rtol=0, atol=tolerance)


def layouts(dtype):
    torch.manual_seed(0)
    yield torch.randn(6, 7, 8, dtype=dtype)
    yield torch.randn(8, 7, 6, dtype=dtype).transpose(0, 2)
    yield torch.randn(12, 7, 16, dtype=dtype)[1::2, :, ::2]
    yield torch.randn(6, 1, 8, dtype=dtype).expand(6, 7, 8)
    yield torch.randn(6 * 7 * 8 + 1, dtype=dtype)[1:].view(6, 7, 8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dims_and_layouts(device, dtype):
    for x in layouts(dtype):
        y = x.to(device) if x.is_contiguous() else move(x, device)
        for r in (1, 2, 3):
            for dims in itertools.permutations(range(3), r):
                close(torch.fft.fftn(y, dim=dims), torch.fft.fftn(x, dim=dims))
                close(torch.fft.ifftn(y, dim=dims), torch.fft.ifftn(x, dim=dims))
                if dtype.is_complex:
                    close(torch.fft.irfftn(y, dim=dims), torch.fft.irfftn(x, dim=dims))
                else:
                    close(torch.fft.rfftn(y, dim=dims), torch.fft.rfftn(x, dim=dims))


def move(x, device):
    """The same values, strides and place in memory on the device."""
    end = x.storage_offset() + sum((n - 1) * s for n, s in zip(x.shape, x.stride())) + 1
    flat = torch.as_strided(x, (end,), (1,), 0).to(device)
    return torch.as_strided(flat, x.shape, x.stride(), x.storage_offset())


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 31, 33, 64, 97, 1000])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_lengths_and_norms(device, n, norm):
    torch.manual_seed(n)
    real, complex_ = (
        torch.randn(3, n, dtype=torch.float64),
        torch.randn(3, n, dtype=torch.complex128),
    )
    for f, x in [
        (torch.fft.fft, complex_),
        (torch.fft.ifft, complex_),
        (torch.fft.fft, real),
        (torch.fft.rfft, real),
        (torch.fft.ihfft, real),
    ]:
        close(f(x.to(device), norm=norm), f(x, norm=norm))
    for length in (2 * n, 2 * n + 1):
        of = (complex_, length, -1, norm)
        close(torch.fft.hfft(of[0].to(device), *of[1:]), torch.fft.hfft(*of))
        y = complex_[:, : length // 2 + 1]
        close(
            torch.fft.irfft(y.to(device), n=length, norm=norm),
            torch.fft.irfft(y, n=length, norm=norm),
        )


def test_input_is_kept(device):
    x = torch.randn(4, 5, dtype=torch.complex64).to(device)
    before = x.clone()
    torch.fft.irfft(x, n=8)
    torch.fft.irfft2(x)
    assert torch.equal(x, before)


def test_many_dims(device):
    torch.manual_seed(1)
    x = torch.randn(2, 3, 2, 3, 2, dtype=torch.complex128)
    close(torch.fft.fftn(x.to(device)), torch.fft.fftn(x))
    close(torch.fft.fftn(x.to(device), dim=(0, 2, 4)), torch.fft.fftn(x, dim=(0, 2, 4)))
    close(torch.fft.rfftn(x.real.to(device)), torch.fft.rfftn(x.real))


@pytest.mark.parametrize("shape", [(3, 40, 37), (9, 40, 37), (5, 17, 6, 33)])
def test_inner_dims(device, shape):
    """Long dimensions that are not the last, with many matrices around them."""
    torch.manual_seed(2)
    for dtype in DTYPES:
        x = torch.randn(*shape, dtype=dtype)
        y = x.to(device)
        close(torch.fft.fft(y, dim=1), torch.fft.fft(x, dim=1))
        close(torch.fft.ifftn(y, dim=(0, 1)), torch.fft.ifftn(x, dim=(0, 1)))
        if dtype.is_complex:
            for n in (32, 33):
                close(torch.fft.irfft(y, n=n, dim=1), torch.fft.irfft(x, n=n, dim=1))
        else:
            close(torch.fft.rfft(y, dim=1), torch.fft.rfft(x, dim=1))


def test_many_shapes(device):
    """More than plans are kept for, each right."""
    x = torch.randn(300, dtype=torch.complex128)
    y = x.to(device)
    for n in [*range(1, 280), 2, 3]:
        close(torch.fft.fft(y[:n]), torch.fft.fft(x[:n]))


def test_gradient(device):
    x = torch.randn(3, 6, dtype=torch.float64)
    grads = []
    for where in ("cpu", device):
        a = x.to(where).detach().requires_grad_()
        torch.fft.irfft(torch.fft.rfft(a) ** 2, n=7).sin().sum().backward()
        grads.append(a.grad)
    close(grads[1], grads[0])
