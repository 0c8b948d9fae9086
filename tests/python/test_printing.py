"""Tensors as text: PyTorch's format."""

import json
from pathlib import Path

import printing_cases
import pytest

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


RECORDED = json.loads((Path(__file__).parent / "data" / "printing.json").read_text())


def test_all_of_pytorchs_texts():
    made = printing_cases.texts(torch, lambda dtype: hasattr(torch, dtype))
    assert len(made) > 400
    assert {name: text for name, text in made.items() if text != RECORDED[name]} == {}


@pytest.fixture
def options():
    yield torch.set_printoptions
    torch.set_printoptions(profile="default")


def test_scientific_or_not(options):
    x = torch.tensor([1.5, -20000.0])
    assert repr(x) == "tensor([ 1.5000e+00, -2.0000e+04])"
    options(sci_mode=False)
    assert repr(x) == "tensor([     1.5000, -20000.0000])"
    options(sci_mode=True)
    assert repr(torch.tensor([1.5, 2.0])) == "tensor([1.5000e+00, 2.0000e+00])"
    assert repr(torch.tensor([1.0, inf])) == "tensor([1.0000e+00,        inf])"
    assert repr(torch.tensor([0.0, 0.0])) == "tensor([0., 0.])"
    assert repr(torch.tensor([1, 2])) == "tensor([1, 2])"
    options(precision=2)  # sci_mode is chosen again
    assert repr(torch.tensor([1.5, 2.0])) == "tensor([1.50, 2.00])"


def test_only_a_gap(options):
    options(threshold=1, edgeitems=0)
    assert repr(torch.ones(5)) == "tensor([...])"
    assert repr(torch.ones(5, 5)) == "tensor([...])"


def test_unknown_profiles_and_long_numbers(options):
    options(profile="no such", precision=400)
    assert len(repr(torch.tensor(1e300, dtype=torch.float64))) > 400
    options(precision=0, sci_mode=False)
    assert repr(torch.tensor([0.5, 1.5])) == "tensor([0, 2])"


def test_subclasses(options):
    class Mine(torch.Tensor):
        pass

    class Weight(torch.nn.Parameter):
        pass

    x = torch.ones(2, 2).as_subclass(Mine)
    assert repr(x) == "Mine([[1., 1.],\n      [1., 1.]])"
    assert repr(Weight(torch.ones(1))) == (
        "Parameter containing:\nParameter(Weight([1.], requires_grad=True))"
    )
    assert x.__repr__(tensor_contents="...") == "Mine(...)"
