"""Fourier transforms beside NumPy's, and their gradients."""

import numpy as np
import pytest

import tessera as torch
from tessera.autograd import gradcheck, gradgradcheck

F = torch.fft
# Small factors in all orders, primes by passes and by convolution, and lengths beyond the cache.
LENGTHS = [
    *range(1, 20),
    32,
    49,
    61,
    64,
    67,
    77,
    96,
    101,
    128,
    121,
    243,
    250,
    509,
    1000,
    1024,
    2310,
]
LONG = [65536, 3 * 2**15, 5**7, 2**17 + 1, 100003]
TOLERANCE = {"complex64": 2e-6, "complex128": 5e-15}


def draw(shape, dtype="complex128", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def check(found, expected, dtype):
    error = np.abs(found.cpu().numpy() - expected).max(initial=0)
    assert found.shape == expected.shape
    assert error <= TOLERANCE[dtype] * max(np.abs(expected).max(initial=0), 1e-30)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", LENGTHS + LONG)
def test_lines(n, dtype, device):
    x = draw((3 if n < 5000 else 1, n), dtype)
    wide, real = x.astype(np.complex128), x.real.astype(np.float64)
    t, r = torch.from_numpy(x).to(device), torch.from_numpy(x.real.copy()).to(device)
    check(F.fft(t), np.fft.fft(wide), dtype)
    check(F.ifft(t), np.fft.ifft(wide), dtype)
    check(F.fft(r), np.fft.fft(real), dtype)
    check(F.rfft(r), np.fft.rfft(real), dtype)
    check(F.ihfft(r), np.fft.ihfft(real), dtype)
    half, t = wide[:, : n // 2 + 1], t[:, : n // 2 + 1]
    check(F.irfft(t, n), np.fft.irfft(half, n), dtype)
    check(F.hfft(t, n), np.fft.hfft(half, n), dtype)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("dims", [None, (0,), (1,), (0, 1), (2, 0), (0, -1)], ids=str)
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 7, 16), (33, 3, 20)], ids=str)
def test_grids(shape, dims, norm, device):
    x = draw(shape)
    t = torch.from_numpy(x).to(device)
    real = torch.from_numpy(x.real.copy()).to(device)
    options = {"axes": dims, "norm": norm}
    check(F.fftn(t, dim=dims, norm=norm), np.fft.fftn(x, **options), "complex128")
    check(F.ifftn(t, dim=dims, norm=norm), np.fft.ifftn(x, **options), "complex128")
    check(F.rfftn(real, dim=dims, norm=norm), np.fft.rfftn(x.real, **options), "complex128")
    check(F.irfftn(t, dim=dims, norm=norm), np.fft.irfftn(x, **options), "complex128")
    # A Hermitian transform undoes its inverse.
    sizes = [shape[d] for d in (dims or range(3))]
    again = F.hfftn(F.ihfftn(real, dim=dims, norm=norm), s=sizes, dim=dims, norm=norm)
    check(again, x.real, "complex128")
    # In any layout.
    for view in (t.transpose(0, 2), t.expand(2, *shape)[1], t[:, ::2], t.flip(0)):
        host = view.cpu().numpy()
        check(F.fftn(view, dim=dims, norm=norm), np.fft.fftn(host, **options), "complex128")


def test_sizes(device):
    x = draw((4, 5))
    t = torch.from_numpy(x).to(device)
    check(F.fft(t, 8), np.fft.fft(x, 8), "complex128")
    check(F.fft(t, 3, 0), np.fft.fft(x, 3, 0), "complex128")
    check(F.fft2(t, (6, 3)), np.fft.fft2(x, (6, 3)), "complex128")
    check(F.irfft2(t, (6, 9)), np.fft.irfft2(x, (6, 9)), "complex128")
    assert F.fftn(t, s=(7,)).shape == (4, 7)
    assert F.fftn(t, s=(-1, 2)).shape == (4, 2)
    assert F.fft(torch.ones(0, 4, device=device)).shape == (0, 4)


def test_dtypes():
    assert F.fft(torch.ones(4)).dtype == torch.complex64
    assert F.fft(torch.ones(4, dtype=torch.int32)).dtype == torch.complex64
    assert F.fft(torch.ones(4).double()).dtype == torch.complex128
    assert F.rfft(torch.ones(4).bool()).dtype == torch.complex64
    assert F.irfft(torch.ones(4)).dtype == torch.float32
    with pytest.raises(RuntimeError, match="Unsupported dtype Half"):
        F.fft(torch.ones(4).half())


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda t: F.fft(t, 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda t: F.fft(t, norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
        (lambda t: F.fft(t[0, 0]), IndexError, "tensor has no dimensions"),
        (lambda t: F.fft(t, dim=2), IndexError, "out of range"),
        (lambda t: F.fftn(t, dim=(0, 0)), RuntimeError, "FFT dims must be unique"),
        (lambda t: F.fftn(t, s=(2,), dim=(0, 1)), RuntimeError, "must have the same length"),
        (lambda t: F.fftn(t, s=(2, 2, 2)), RuntimeError, "Got shape with 3 values"),
        (lambda t: F.rfft(t.to(torch.complex64)), RuntimeError, "rfft expects a real input"),
        (lambda t: F.irfft(t[:, :1]), RuntimeError, r"Invalid number of data points \(0\)"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.ones(3, 4))


GRADIENTS = {
    "fft": (lambda x: F.fft(x, 5), "complex128", (2, 4)),
    "fft_real": (lambda x: F.fft(x, 3), "float64", (2, 4)),
    "ifft": (lambda x: F.ifft(x, dim=0, norm="ortho"), "complex128", (3, 2)),
    "rfft_even": (F.rfft, "float64", (2, 4)),
    "rfft_odd": (F.rfft, "float64", (2, 5)),
    "irfft_even": (lambda x: F.irfft(x, 6), "complex128", (2, 4)),
    "irfft_odd": (lambda x: F.irfft(x, 7), "complex128", (2, 4)),
    "hfft": (F.hfft, "complex128", (2, 4)),
    "ihfft": (F.ihfft, "float64", (2, 5)),
    "rfftn": (F.rfftn, "float64", (3, 4)),
    "irfftn": (lambda x: F.irfftn(x, (3, 5)), "complex128", (3, 3)),
    "hfftn": (F.hfftn, "complex128", (3, 3)),
    "ihfftn": (F.ihfftn, "float64", (3, 4)),
    "shift": (F.fftshift, "float64", (3, 4)),
    "stft": (lambda x: torch.stft(x, 4, return_complex=True), "float64", (2, 12)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    function, dtype, shape = GRADIENTS[name]
    x = torch.from_numpy(draw(shape, dtype)).requires_grad_()
    assert gradcheck(function, [x]) and gradgradcheck(function, [x])


def test_frequencies_and_order():
    for n in (4, 5):
        np.testing.assert_allclose(F.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(F.rfftfreq(n, 0.5).numpy(), np.fft.rfftfreq(n, 0.5))
    assert F.fftfreq(4, dtype=torch.float64).dtype == torch.float64
    x = torch.arange(15).view(3, 5)
    for dims in (None, 0, (0, 1)):
        assert F.fftshift(x, dims).tolist() == np.fft.fftshift(x.numpy(), dims).tolist()
        assert F.ifftshift(F.fftshift(x, dims), dims).equal(x)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("length", [16, 12])
def test_short_time(length, normalized, center, device):
    x = torch.from_numpy(draw((2, 100), "float64")).to(device)
    window = torch.hann_window(length, periodic=False, dtype=torch.float64, device=device) + 0.1
    options = {"n_fft": 16, "hop_length": 4, "win_length": length, "window": window}
    options.update(center=center, normalized=normalized)
    spectrum = torch.stft(x, return_complex=True, **options)
    assert spectrum.shape == (2, 9, 26 if center else 22)
    # One frame by hand.
    padded = np.pad(x.cpu().numpy(), ((0, 0), (8, 8)), "reflect") if center else x.cpu().numpy()
    left = (16 - length) // 2
    whole = np.pad(window.cpu().numpy(), (left, 16 - length - left))
    frame = np.fft.rfft(padded[:, 12:28] * whole) / (4 if normalized else 1)
    np.testing.assert_allclose(spectrum[:, :, 3].cpu().numpy(), frame, atol=1e-12)
    if length == 16 or center:
        back = torch.istft(spectrum, length=100 if center else None, **options)
        np.testing.assert_allclose(back.cpu().numpy(), x.cpu().numpy(), atol=1e-10)
    two = torch.stft(x, onesided=False, return_complex=False, **options)
    assert two.shape == (2, 16, spectrum.shape[2], 2)


def test_short_time_refuses():
    x = torch.ones(20)
    with pytest.raises(RuntimeError, match="return_complex"):
        torch.stft(x, 4)
    with pytest.raises(RuntimeError, match="win_length"):
        torch.stft(x, 4, win_length=5, return_complex=True)
    with pytest.raises(RuntimeError, match="window tensor of size equal to win_length"):
        torch.stft(x, 4, window=torch.ones(3), return_complex=True)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        torch.istft(torch.ones(3, 4, dtype=torch.complex64), 4, window=torch.zeros(4))
