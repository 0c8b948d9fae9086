"""Corners of operators: arguments that few programs give, with PyTorch's answers."""

import numpy as np
import pytest

import tessera as torch


def test_what_is_filled_twice_counts_once(device):
    x = torch.zeros(5, 5, device=device, requires_grad=True)
    value = torch.tensor(2.0, device=device, requires_grad=True)
    index = torch.tensor([4, 3, 3, 4, -5], device=device)
    x.index_fill(-1, index, value).sum().backward()
    assert value.grad.item() == 15.0
    assert x.grad.sum().item() == 10.0


def test_an_empty_range_of_logit_is_its_lower_end(device):
    x = torch.tensor([0.1, 0.5, 0.55, 0.9], device=device)
    wanted = torch.logit(torch.tensor(0.6)).item()
    got = torch.logit(x, 0.6).tolist()
    assert got[:3] == pytest.approx([wanted] * 3)
    assert got[3] == pytest.approx(-wanted)


def test_the_loss_of_one_row_has_its_targets_shape(device):
    x = torch.tensor([0.1, 0.2, 0.4], device=device)
    loss = torch.nn.functional.multi_margin_loss
    assert loss(x, torch.tensor([2], device=device), reduction="none").shape == (1,)
    assert loss(x, torch.tensor(2, device=device), reduction="none").shape == ()


def test_quotients_of_numbers_are_rounded(device):
    assert torch.div(7.0, 2.0, rounding_mode="floor").item() == 3.0
    assert torch.div(-7, 2, rounding_mode="trunc").item() == -3
    y = torch.tensor([2, -2], device=device)
    assert torch.div(7, y, rounding_mode="floor").tolist() == [3, -4]
    assert torch.div(7, y, rounding_mode="floor").dtype == torch.int64
    assert torch.div(7, y, rounding_mode=None).tolist() == [3.5, -3.5]
    half = torch.tensor([2.0], dtype=torch.float16, device=device)
    assert torch.div(7, half, rounding_mode="trunc").dtype == torch.float16
    with pytest.raises(RuntimeError, match="rounding_mode"):
        torch.div(7.0, 2.0, rounding_mode="up")


def test_layouts_that_no_tensor_has(device):
    assert repr(torch.sparse_coo) == "torch.sparse_coo"
    assert torch.zeros(2, device=device).layout is torch.strided
    with pytest.raises(NotImplementedError, match="strided"):
        torch.zeros(3, layout=torch.sparse_coo, device=device)
    with pytest.raises(ValueError, match="strided tensors only"):
        torch.signal.windows.hann(3, layout=torch.sparse_csr)


def test_windows_beyond_all_numbers(device):
    x = torch.zeros(1, 2, 3, device=device)
    with pytest.raises(RuntimeError, match="effective kernel size overflows"):
        torch.nn.functional.max_pool1d(x, kernel_size=8608480567731124087, dilation=1250999896764)
    with pytest.raises(RuntimeError, match="narrow_copy"):
        torch.narrow_copy(x, 3, 0, 0)


def test_square_roots_are_rounded_correctly(device):
    # Every exponent and sign, and 8192 fractions of each.
    bits = (np.arange(2**22, dtype=np.uint64) * 1021).astype(np.uint32)
    ends = [0, 0x80000000, 1, 0x7FFFFF, 0x800000, 0x0CFFFFFF, 0x0D000000, 0x7F7FFFFF, 0x7F800000]
    x = np.concatenate([bits, np.array([*ends, 0xFF800000, 0x7FC00000], dtype=np.uint32)])
    x = x.view(np.float32)
    with np.errstate(invalid="ignore"):
        wanted = np.sqrt(x)
    got = torch.sqrt(torch.from_numpy(x).to(device)).cpu().numpy()
    assert np.array_equal(got, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(got[wanted == 0]), np.signbit(wanted[wanted == 0]))


def test_the_gradient_of_a_complex_cholesky_factor(device):
    # The diagonal of what comes back is complex; a matrix that was made Hermitian drops that.
    torch.manual_seed(0)
    m = torch.randn(3, 3, dtype=torch.complex128).to(device)
    a = (m @ m.mH + 3 * torch.eye(3, device=device)).requires_grad_()
    g = torch.randn(3, 3, dtype=torch.complex128).to(device)
    for upper in (False, True):
        factor = torch.linalg.cholesky(a, upper=upper)
        (got,) = torch.autograd.grad(factor, a, g)
        low, high = (factor.mH, g.mH) if upper else (factor, g)
        p = (low.mH @ high).tril().detach()
        s = p + p.tril(-1).mH
        wanted = torch.linalg.solve(low.mH, s) @ torch.linalg.inv(low) / 2
        assert torch.allclose(got, wanted.detach())
