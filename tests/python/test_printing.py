"""Tensors as text: PyTorch's format."""

import tessera as torch

inf, nan = float("inf"), float("nan")


def test_numbers():
    assert repr(torch.tensor(3)) == "tensor(3)"
    assert repr(torch.tensor(2.5)) == "tensor(2.5000)"
    assert repr(torch.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert repr(torch.tensor([1, -20])) == "tensor([  1, -20])"
    assert repr(torch.tensor([True, False])) == "tensor([ True, False])"
    assert repr(torch.tensor([0.0, -0.5])) == "tensor([ 0.0000, -0.5000])"
    assert repr(torch.tensor([1e-5, 1.0])) == "tensor([1.0000e-05, 1.0000e+00])"
    assert repr(torch.tensor([1e10, 1.0])) == "tensor([1.0000e+10, 1.0000e+00])"
    assert repr(torch.tensor([1.0, inf, -inf, nan])) == "tensor([1., inf, -inf, nan])"
    assert repr(torch.tensor([1.5, inf, nan])) == "tensor([1.5000,    inf,    nan])"
    assert repr(torch.tensor([nan, inf])) == "tensor([nan, inf])"
    assert repr(torch.tensor([0.0, 0.0])) == "tensor([0., 0.])"


def test_shapes():
    assert repr(torch.tensor([])) == "tensor([])"
    assert repr(torch.zeros(0, 3)) == "tensor([], size=(0, 3))"
    assert repr(torch.zeros(0, dtype=torch.int64)) == "tensor([], dtype=torch.int64)"
    assert repr(torch.ones(2, 2)) == "tensor([[1., 1.],\n        [1., 1.]])"
    assert repr(torch.ones(1, 2, 1)) == "tensor([[[1.],\n         [1.]]])"
    assert repr(torch.ones(2, 1, 1)) == "tensor([[[1.]],\n\n        [[1.]]])"


def test_long_ones():
    assert repr(torch.ones(2000)) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"
    text = repr(torch.ones(100, 100))
    assert text.splitlines()[3] == "        ..." + "," and text.count("...") == 7
    lines = repr(torch.ones(100) * 0.5).splitlines()
    assert len(lines) == 12 and lines[1] == "        " + ", ".join(["0.5000"] * 9) + ","


def test_suffixes(device):
    half = torch.ones(2, dtype=torch.float16)
    assert repr(half) == "tensor([1., 1.], dtype=torch.float16)"
    x = torch.ones(2, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2., 2.], grad_fn=<MulBackward0>)"
    if device == "cuda":
        assert repr(torch.ones(2, device=device)) == "tensor([1., 1.], device='cuda:0')"
        assert "device='cuda:0'" in repr(torch.ones(2000, device=device))


def test_format_and_options():
    assert f"{torch.tensor(1.23456):.2f}" == "1.23"
    assert f"{torch.ones(1)}" == "tensor([1.])"
    torch.set_printoptions(precision=2)
    try:
        assert repr(torch.tensor([0.125])) == "tensor([0.12])"
    finally:
        torch.set_printoptions(profile="default")
