"""torch.testing: assert_close with PyTorch's rules and words, make_tensor."""

import re

import numpy as np
import pytest

import tessera as torch
from tessera.testing import assert_close, make_tensor

nan, inf = float("nan"), float("inf")


def refuses(actual, expected, words, error=AssertionError, **options):
    with pytest.raises(error, match=words) as caught:
        assert_close(actual, expected, **options)
    return str(caught.value)


def test_equal_and_close(device):
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64", "int64", "bool"):
        x = torch.tensor([1, 0, 3], device=device).to(getattr(torch, dtype))
        assert_close(x, x.clone())
    assert_close(torch.tensor([1.0]), torch.tensor([1.000001]))
    assert_close(torch.tensor([inf, -inf]), torch.tensor([inf, -inf]))
    assert_close(torch.tensor([nan]), torch.tensor([nan]), equal_nan=True)
    assert_close(torch.zeros(0), torch.zeros(0))
    assert_close(torch.tensor([1.0, 2.0])[::1], torch.tensor([[1.0], [2.0]]).t()[0])


def test_the_text_for_tensors():
    text = refuses(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 2.0, 3.0]), "not close")
    assert text == (
        "Tensor-likes are not close!\n\n"
        "Mismatched elements: 1 / 3 (33.3%)\n"
        "Greatest absolute difference: 1.0 at index (2,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.3333333432674408 at index (2,) (up to 1.3e-06 allowed)"
    )
    text = refuses(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1, 2], [3, 9]]), "not equal")
    assert text == (
        "Tensor-likes are not equal!\n\n"
        "Mismatched elements: 1 / 4 (25.0%)\n"
        "Greatest absolute difference: 5 at index (1, 1)\n"
        "Greatest relative difference: 0.5555555555555556 at index (1, 1)"
    )
    text = refuses(torch.tensor([nan, 5.0]), torch.tensor([1.0, 1.0]), "not close")
    assert "Greatest absolute difference: nan at index (0,)" in text
    text = refuses(torch.tensor(2.0), torch.tensor(1.0), "not close")
    assert text == (
        "Scalars are not close!\n\n"
        "Expected 1.0 but got 2.0.\n"
        "Absolute difference: 1.0 (up to 1e-05 allowed)\n"
        "Relative difference: 1.0 (up to 1.3e-06 allowed)"
    )


def test_the_text_for_numbers():
    text = refuses(1, 3, "not equal")
    assert text.startswith(
        "Scalars are not equal!\n\nExpected 3 but got 1.\nAbsolute difference: 2\n"
    )
    refuses(1.0, 1, re.escape("The (d)types do not match: <class 'float'> != <class 'int'>."))
    assert_close(1.0, 1, check_dtype=False)
    assert_close(1.0, 1.00000001)
    refuses(0.0, 1.0, "Relative difference: 1.0")
    refuses(1.0, 0.0, "Relative difference: inf")
    refuses(nan, nan, "not close")
    assert_close(nan, nan, equal_nan=True)
    refuses(True, False, "Booleans mismatch: True is not False")


@pytest.mark.parametrize(
    "a, b, words, options",
    [
        (torch.ones(2), torch.ones(3), "'shape' do not match", {}),
        (torch.ones(2), torch.ones(2).double(), "'dtype' do not match: torch.float32 != ", {}),
        (torch.ones(2, 2).t(), torch.ones(2, 2), "'stride", {"check_stride": True}),
        ([1, 2], [1], "The length of the sequences mismatch: 2 != 1", {}),
        ({"a": 1}, {"b": 1}, "Missing keys in the actual mapping: .'b'.", {}),
        (None, 1, "None mismatch", {}),
    ],
)
def test_attributes_and_containers(a, b, words, options):
    refuses(a, b, words, **options)


def test_devices(accelerator):
    x = torch.ones(2)
    refuses(x, x.cuda(), "'device' do not match: cpu != cuda:0")
    assert_close(x, x.cuda(), check_device=False)


def test_containers():
    x = torch.ones(2)
    assert_close([x, (x, 1)], [x.clone(), (x.clone(), 1)])
    assert_close({"a": x, "b": [1]}, {"b": [1], "a": x})
    text = refuses({"a": [x, x]}, {"a": [x, x + 1]}, "not close")
    assert text.endswith("The failure occurred for item ['a'][1]")
    assert_close((), ())
    assert_close(None, None)


def test_arguments():
    x, y = torch.tensor([1.0]), torch.tensor([1.1])
    assert_close(x, y, rtol=0, atol=0.2)
    refuses(x, y, "up to 0.05 allowed", rtol=0.0, atol=0.05)
    refuses(x, y, "both be specified or both be unspecified", ValueError, rtol=1)
    refuses(x, y, "^mine$", msg="mine")
    refuses(x, y, "before: Tensor-likes", msg=lambda m: "before: " + m)
    refuses("a", 1, "No comparison pair was able to handle inputs of type", TypeError)
    assert_close(x, x.double(), check_dtype=False)
    assert_close(np.array([1.0]), np.array([1.0]))
    refuses(np.array([1.0]), np.array([2.0]), "not close")
    refuses(x, torch.nn.Parameter(x), "No comparison pair", TypeError, allow_subclasses=False)
    assert_close(x, torch.nn.Parameter(x))


def test_tolerances_are_the_dtypes():
    for dtype, step in (
        ("float16", 2e-3),
        ("bfloat16", 3e-2),
        ("float32", 5e-5),
        ("float64", 1e-6),
    ):
        x = torch.ones(1, dtype=getattr(torch, dtype))
        refuses(x + step, x, "not close")
        assert_close(x + step / 20, x)


def test_make_tensor(device):
    for dtype in "float16 bfloat16 float32 float64 complex64 int8 uint8 int64 bool".split():
        kind = getattr(torch, dtype)
        x = make_tensor(3, 4, dtype=kind, device=device)
        assert x.shape == (3, 4) and x.dtype == kind and x.device.type == device
        assert not make_tensor(
            (2, 3), dtype=kind, device=device, noncontiguous=True
        ).is_contiguous()
    x = make_tensor(1000, dtype=torch.float32, device=device, low=2, high=3)
    values = x.tolist()
    assert min(values) >= 2 and max(values) <= 3 and len(set(values)) > 900
    values = make_tensor(1000, dtype=torch.int32, device=device, low=-2, high=3).tolist()
    assert set(values) == {-2, -1, 0, 1, 2}
    assert set(make_tensor(50, dtype=torch.bool, device=device).tolist()) == {True, False}
    assert make_tensor((), dtype=torch.float32, device=device, requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="less than `high`"):
        make_tensor(2, dtype=torch.int64, device=device, low=3, high=3)
    with pytest.raises(ValueError, match="requires_grad"):
        make_tensor(2, dtype=torch.int64, device=device, requires_grad=True)


def test_integers_between_fractions():
    for low, high, want in ((0.5, 2.5, {1, 2}), (-1.5, 1.5, {-1, 0, 1}), (3, 3.5, {3})):
        got = make_tensor(200, dtype=torch.int64, device="cpu", low=low, high=high)
        assert set(got.tolist()) == want
    with pytest.raises(ValueError, match="only supports"):
        make_tensor(3, dtype=torch.uint8, device="cpu", low=300, high=400)
    with pytest.raises(ValueError, match="must be less than"):
        make_tensor(3, dtype=torch.bool, device="cpu", low=0, high=0)
