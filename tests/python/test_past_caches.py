"""Operands larger than the caches: results are written past those, and are what parts give."""

import pytest
from conftest import KIND

import tessera as torch
from tessera.nn import functional as F

pytestmark = pytest.mark.skipif(KIND != "cpu", reason="how the CPU writes")

CASES = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "one operator": lambda x: x + 1,
    "a function": lambda x: F.gelu(x),
    "many operators": lambda x: (x * 0.5 + 1) * x - x.abs() * 3,
    "a sum of its own": lambda x: (x * 2 - 1).sum(-1, keepdim=True) + x,
    "a copy": lambda x: x.clone(),
    "another dtype": lambda x: x.to(torch.float64 if x.dtype != torch.float64 else torch.float32),
}


@pytest.fixture(scope="module", params=[4096, 1031])
def columns(request):
    return request.param


@pytest.fixture(
    scope="module", params=[torch.float32, torch.bfloat16, torch.float64], ids=lambda d: str(d)
)
def x(request, columns):
    rows = (36 << 20) // (request.param.itemsize * columns)  # with a result 72 MiB
    return torch.randn(rows, columns).to(request.param)


@pytest.mark.parametrize("name", CASES)
def test_as_its_parts(name, x):
    whole = CASES[name](x)
    pieces = torch.cat([CASES[name](part) for part in x.split(97)])
    assert torch.equal(whole, pieces)
