"""How much precision products of float32 may lose: PyTorch's settings."""

import pytest

import tessera as torch
from tessera import nn


def as_at_the_start():
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.fp32_precision = "none"


@pytest.fixture(autouse=True)
def untouched():
    as_at_the_start()  # other tests set it too
    yield
    as_at_the_start()


def test_three_names_of_one_setting():
    matmul = torch.backends.cuda.matmul
    assert matmul.fp32_precision == "none" and not matmul.allow_tf32
    for precision, allowed in (("high", True), ("highest", False), ("medium", True)):
        torch.set_float32_matmul_precision(precision)
        assert torch.get_float32_matmul_precision() == precision
        assert matmul.allow_tf32 is allowed
    assert matmul.fp32_precision == "tf32"
    matmul.allow_tf32 = False
    assert torch.get_float32_matmul_precision() == "highest" and matmul.fp32_precision == "ieee"
    matmul.fp32_precision = "tf32"
    assert matmul.allow_tf32
    with pytest.raises(RuntimeError, match="Invalid precision"):
        matmul.fp32_precision = "fp8"
    with pytest.raises(RuntimeError, match="is not one of 'highest', 'high', or 'medium'"):
        torch.set_float32_matmul_precision("low")
    assert matmul.allow_tf32


def test_products_stay_close(device):
    """Allowed is not done: only GPUs that have it round to 10 bits, and only float32."""
    torch.manual_seed(0)
    a, b = torch.randn(64, 96), torch.randn(96, 32)
    bias = torch.randn(32)
    exact = a.double() @ b.double() + bias.double()
    for allowed, tolerance in ((False, 1e-5), (True, 5e-3)):
        torch.backends.cuda.matmul.allow_tf32 = allowed
        for dtype in (torch.float32, torch.float64):
            x, w, c = (t.to(device, dtype) for t in (a, b, bias))
            near = 1e-12 if dtype == torch.float64 else tolerance
            for got in (x @ w + c, nn.functional.linear(x, w.T, c), torch.addmm(c, x, w)):
                assert (got.cpu().double() - exact).norm() / exact.norm() < near
            batches = torch.bmm(x.expand(3, -1, -1), w.expand(3, -1, -1))[1] + c
            assert (batches.cpu().double() - exact).norm() / exact.norm() < near
