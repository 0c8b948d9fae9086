"""Memory shared with NumPy."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import tessera as torch

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("name", DTYPES)
def test_both_ways_share(name):
    array = np.arange(6).reshape(2, 3).astype(name)
    t = torch.from_numpy(array)
    assert str(t.dtype) == "torch." + name and t.tolist() == array.tolist()
    array[0, 0] = 1
    assert t.tolist() == array.tolist()
    t[1, 2] = 0
    assert array[1, 2] == 0
    back = t.numpy()
    assert back.dtype == array.dtype and np.shares_memory(back, array)


def test_strides_go_along():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    t = torch.from_numpy(array.T[::2])
    assert t.shape == (2, 3) and t.stride() == (2, 4) and t.tolist() == array.T[::2].tolist()
    assert np.shares_memory(t.t().numpy(), array)
    assert torch.tensor(3.5).numpy().shape == ()
    assert torch.zeros(0, 3).numpy().shape == (0, 3)


def test_memory_outlives_its_maker():
    t = torch.from_numpy(np.ones(1000))
    array = torch.ones(1000).numpy()
    gc.collect()
    torch.zeros(1000), np.zeros(1000)
    assert t.sum().item() == 1000 and array.sum() == 1000


def test_written_in_place_while_shared():
    t = torch.ones(4)
    array = t.numpy()
    t.add_(1)
    assert array.tolist() == [2.0] * 4
    u = t * 3
    array[:] = 0
    assert u.tolist() == [6.0] * 4 and t.tolist() == [0.0] * 4


def test_refusals(device):
    with pytest.raises(RuntimeError, match=r"Use tensor.detach\(\).numpy\(\)"):
        torch.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="BFloat16"):
        torch.ones(2, dtype=torch.bfloat16).numpy()
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(np.ones(3)[::-1])
    with pytest.raises(TypeError, match="expected np.ndarray"):
        torch.from_numpy([1, 2])
    with pytest.raises(TypeError):
        torch.from_numpy(np.array(["a"]))
    if device == "cuda":
        with pytest.raises(TypeError, match=r"Use Tensor.cpu\(\)"):
            torch.ones(2, device=device).numpy()
    assert torch.ones(2, device=device, requires_grad=True).numpy(force=True).tolist() == [1.0, 1.0]


def test_array_protocol():
    t = torch.ones(2, 3)
    assert np.asarray(t).shape == (2, 3)
    assert np.shares_memory(np.asarray(t), t.numpy())
    assert np.array(t, dtype=np.float64).dtype == np.float64
    assert np.add(t.numpy(), 1).tolist() == [[2.0] * 3] * 2


def test_tensor_and_as_tensor():
    array = np.ones(3)
    assert torch.tensor(array).dtype is torch.float64
    assert not np.shares_memory(torch.tensor(array).numpy(), array)
    assert np.shares_memory(torch.as_tensor(array).numpy(), array)
    assert torch.tensor([np.float64(1), 2]).dtype is torch.float64
    assert torch.tensor(np.int32(3)).dtype is torch.int32
    assert torch.ones(3)[np.int64(1)].item() == 1.0


def test_import_does_not_bring_numpy():
    code = "import sys, tessera; assert 'numpy' not in sys.modules; print(tessera.ones(2))"
    subprocess.run([sys.executable, "-c", code], check=True)
