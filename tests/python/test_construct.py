"""Tensors from Python's values, attributes, conversions and indexing."""

import pytest

import tessera as torch


def test_inferred_dtypes():
    assert torch.tensor(1).dtype is torch.int64
    assert torch.tensor(1.0).dtype is torch.float32
    assert torch.tensor(True).dtype is torch.bool
    assert torch.tensor([1, 2.0, True]).dtype is torch.float32
    assert torch.tensor([]).dtype is torch.float32 and torch.tensor([]).shape == (0,)
    assert torch.tensor([[], []]).shape == (2, 0)
    assert torch.tensor((1, 2)).tolist() == [1, 2]
    assert torch.tensor(range(3)).tolist() == [0, 1, 2]
    assert torch.tensor([torch.tensor(1.5), 2]).tolist() == [1.5, 2.0]


def test_bad_data():
    with pytest.raises(ValueError, match=r"expected sequence of length 2 at dim 1 \(got 1\)"):
        torch.tensor([[1, 2], [3]])
    with pytest.raises(TypeError, match="invalid data type 'str'"):
        torch.tensor("1")
    with pytest.raises(TypeError):
        torch.tensor([1, "2"])
    with pytest.raises(RuntimeError, match="Overflow"):
        torch.tensor(2**70)
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1], requires_grad=True)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float64"])
def test_values_go_in_and_out(dtype, device):
    t = torch.tensor([[0, 1], [1, 0]], dtype=getattr(torch, dtype), device=device)
    assert t.tolist() == [[0, 1], [1, 0]] and t[0, 1].item() == 1
    assert type(t[0, 1].item()) is (bool if dtype == "bool" else type(t.tolist()[0][0]))


def test_attributes(device):
    x = torch.ones(2, 3, device=device)
    assert x.shape == x.size() == torch.Size([2, 3]) and x.size(-1) == 3
    assert x.stride() == (3, 1) and x.stride(0) == 3
    assert x.dim() == x.ndim == 2 and x.numel() == x.nelement() == 6 and len(x) == 2
    assert x.is_cuda == (device == "cuda") and x.layout is torch.strided
    assert x.is_contiguous() and not x.t().is_contiguous() and x[1].storage_offset() == 3
    assert x.itemsize == x.element_size() == 4 and x.nbytes == 24
    assert x.is_leaf and x.grad is None and x.grad_fn is None
    assert x.data_ptr() and x[1].data_ptr() == x.data_ptr() + 12
    assert x.type() == ("torch.cuda.FloatTensor" if device == "cuda" else "torch.FloatTensor")
    with pytest.raises(IndexError):
        x.size(2)


def test_size_is_a_tuple():
    size = torch.ones(2, 3, 4).shape
    assert repr(size) == "torch.Size([2, 3, 4])" and size.numel() == 24
    assert type(size[1:]) is torch.Size and type(size + (1,)) is torch.Size
    assert size[0] == 2 and (2, 3, 4) == size and hash(size) == hash((2, 3, 4))


def test_dtype_and_device_objects():
    import copy
    import pickle

    assert repr(torch.float32) == "torch.float32" and torch.float is torch.float32
    assert torch.float16.is_floating_point and not torch.int64.is_floating_point
    assert torch.float64.itemsize == 8
    assert copy.deepcopy(torch.float32) is torch.float32
    assert pickle.loads(pickle.dumps(torch.bfloat16)) is torch.bfloat16
    d = torch.device("cuda:1")
    assert d.type == "cuda" and d.index == 1 and str(d) == "cuda:1"
    assert repr(d) == "device(type='cuda', index=1)" and d == torch.device("cuda", 1)
    assert repr(torch.device("cpu")) == "device(type='cpu')"
    assert torch.device("cuda") != d and hash(torch.device("cuda:1")) == hash(d)
    assert pickle.loads(pickle.dumps(d)) == d


def test_to_in_all_spellings(device):
    x = torch.ones(2)
    assert x.to(torch.float16).dtype is torch.float16
    assert x.to(device).device.type == device
    assert x.to(device, torch.float64).dtype is torch.float64
    assert x.to(device=device, dtype=torch.int64, non_blocking=True).dtype is torch.int64
    assert x.to(torch.ones(1, dtype=torch.int32)).dtype is torch.int32
    assert x.to(torch.float32, copy=True) is not x and x.to("cpu") is x
    assert x.half().dtype is torch.float16 and x.long().dtype is torch.int64
    assert x.bool().tolist() == [True, True] and x.double().float().dtype is torch.float32
    with pytest.raises(TypeError):
        x.to(3.5)
    with pytest.raises(TypeError, match="unexpected keyword"):
        x.to(nothing=1)


def test_conversions_have_gradients(device):
    x = torch.ones(2, requires_grad=True)
    (x.to(device).double() * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and x.grad.dtype is torch.float32 and not x.grad.is_cuda


@pytest.fixture
def grid(device):
    return torch.tensor([[4 * r + c for c in range(4)] for r in range(3)], device=device)


def test_reading_by_index(grid):
    rows = grid.tolist()
    assert grid[1].tolist() == rows[1] and grid[-1, 0].item() == rows[-1][0]
    assert grid[1:].tolist() == rows[1:] and grid[::2].tolist() == rows[::2]
    assert grid[:, 1].tolist() == [r[1] for r in rows]
    assert grid[:, -2:].tolist() == [r[-2:] for r in rows]
    assert grid[..., 0].tolist() == [r[0] for r in rows]
    assert grid[None].shape == (1, 3, 4) and grid[:, None, 1:].shape == (3, 1, 3)
    assert grid[..., None].shape == (3, 4, 1) and grid[5:].shape == (0, 4)
    assert grid[torch.tensor([2, 0])].tolist() == [rows[2], rows[0]]
    assert grid[:, [3, 1]].tolist() == [[r[3], r[1]] for r in rows]
    assert grid[1, torch.tensor([3, 1])].tolist() == [rows[1][3], rows[1][1]]
    assert grid[torch.tensor(1)].tolist() == rows[1]
    assert grid[...] is not grid and grid[...]._is_same_storage(grid)
    assert grid[:]._is_same_storage(grid)
    assert [r.tolist() for r in grid] == rows
    assert torch.tensor(5)[...].item() == 5


def test_bad_indices(grid):
    for index, error in (
        (3, IndexError),
        ((0, 4), IndexError),
        ((0, 0, 0), IndexError),
        ("a", TypeError),
        (1.5, IndexError),
        (slice(None, None, -1), ValueError),
    ):
        with pytest.raises(error):
            grid[index]
    with pytest.raises(IndexError, match="0-dim"):
        torch.tensor(1)[0]
    with pytest.raises(TypeError, match="0-d"):
        len(torch.tensor(1))
    with pytest.raises(TypeError, match="0-d"):
        iter(torch.tensor(1))


def test_writing_by_index(grid):
    grid[0] = 9
    grid[1:, 1] = torch.tensor([7, 8])
    grid[2, 2:] = [5, 6]
    grid[..., 0] = torch.tensor([[1, 2, 3]], device=grid.device)
    assert grid.tolist() == [[1, 9, 9, 9], [2, 7, 6, 7], [3, 8, 5, 6]]
    with pytest.raises(RuntimeError):
        grid[0] = torch.ones(3)
    grid[torch.tensor([0, 1])] = 1
    assert grid.tolist() == [[1, 1, 1, 1], [1, 1, 1, 1], [3, 8, 5, 6]]


def test_truth():
    assert torch.tensor(1) and not torch.tensor([0.0])
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        torch.ones(2).item()


def test_seeds_give_pytorchs_numbers():
    torch.manual_seed(0)
    wanted = [0.4962566, 0.7682218, 0.0884774]
    assert torch.rand(3).tolist() == pytest.approx(wanted, abs=1e-6)
