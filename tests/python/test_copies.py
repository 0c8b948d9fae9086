"""Copies between layouts: orders of dimensions, steps, repeats and parts, as source and target."""

import itertools

import numpy as np
import pytest

import tessera as torch

DTYPES = [np.uint8, np.float16, np.float32, np.float64, np.complex128]
SHAPES = [(7,), (131, 70), (1, 3), (64, 128), (3, 67, 45), (5, 3, 33, 18), (300, 3)]


def numbers(shape, dtype):
    count = int(np.prod(shape))
    return (np.arange(count, dtype=np.int64) * 37 % 251).reshape(shape).astype(dtype)


def same(tensor, expected):
    assert tensor.is_contiguous()
    assert tensor.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_orders(shape, dtype, device):
    a = numbers(shape, dtype)
    x = torch.from_numpy(a).to(device)
    for order in itertools.permutations(range(len(shape))):
        if len(shape) > 3 and order[0] == 0:
            continue
        same(x.permute(*order).contiguous(), a.transpose(order))
        # Into a target in that order, all of it and a part.
        wide = torch.zeros([2 * shape[d] for d in order], dtype=x.dtype, device=device)
        target = wide.permute(*np.argsort(order).tolist())
        part = tuple(slice(1, 2 * n, 2) if i % 2 else slice(n) for i, n in enumerate(shape))
        target[part].copy_(x)
        expected = np.zeros([2 * n for n in shape], dtype)
        expected[part] = a
        same(target.contiguous(), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_steps_and_repeats(dtype, device):
    a = numbers((40, 130), dtype)
    x = torch.from_numpy(a).to(device)
    same(x[:, ::2].contiguous(), a[:, ::2])
    same(x[::3, 5:].contiguous(), a[::3, 5:])
    same(x.t()[::2, ::3].contiguous(), a.T[::2, ::3])
    same(x[:1].expand(9, 130).contiguous(), np.broadcast_to(a[:1], (9, 130)))
    same(x[:, :1].expand(40, 70).contiguous(), np.broadcast_to(a[:, :1], (40, 70)))
    same(x.unsqueeze(1).expand(40, 2, 130).contiguous(), np.repeat(a[:, None], 2, 1))


def test_large(device):
    """Past the caches, with lines of source and target that begin alike, and that do not."""
    for rows, cols in ((2048, 2064), (2047, 2051)):
        a = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
        x = torch.from_numpy(a).to(device)
        assert np.array_equal(x.t().contiguous().cpu().numpy(), a.T)
        assert np.array_equal(x.clone().cpu().numpy(), a)
    a = np.arange(13 * 1024 * 1024, dtype=np.float32)
    x = torch.from_numpy(a).to(device)
    assert np.array_equal(x.clone().cpu().numpy(), a)
    assert np.array_equal((x + x).cpu().numpy(), a + a)
    assert np.array_equal(x[1:].clone().cpu().numpy(), a[1:])
    assert np.array_equal(x.to(torch.float64).cpu().numpy(), a.astype(np.float64))


def test_to_in_all_its_forms():
    x = torch.arange(6.0).view(2, 3)
    assert x.to(torch.float32) is x and x.to("cpu") is x and x.to(x) is x
    assert x.to(torch.float32, copy=True) is not x
    assert x.to(x, False, True) is not x
    assert x.to("cpu", torch.float64, True, True).dtype == torch.float64
    assert x.to(other=x.long()).dtype == torch.int64
    assert x.to(device="cpu", dtype=torch.int8).dtype == torch.int8
    y = torch.zeros(1, 2, 3, 4)
    for z in (
        y.to(memory_format=torch.channels_last),
        y.to(torch.float64, memory_format=torch.channels_last),
        y.half(memory_format=torch.channels_last),
        y.clone(memory_format=torch.channels_last),
    ):
        assert z.stride() == (24, 1, 8, 2)
    assert torch.ones(2, dtype=torch.int8).type_as(x).dtype == torch.float32
    assert x.cdouble().dtype == torch.complex128 and x.bool().tolist()[0] == [False, True, True]
    with pytest.raises(TypeError, match="memory_format"):
        x.float(memory_format=3)


def test_gradients_of_conversions():
    x = torch.arange(4.0, dtype=torch.float64, requires_grad=True)
    y = x.float().to(torch.float64, copy=True).clone() * 3
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 3, 3] and x.grad.dtype == torch.float64
    z = torch.zeros(2, requires_grad=True)
    v = torch.tensor(2.0, requires_grad=True)
    g = torch.autograd.grad(torch.fill(z, v).sum() + (z * 1).fill_(v).sum(), (z, v))
    assert g[0].tolist() == [0, 0] and g[1].item() == 4


def test_copy_broadcasts_and_refuses():
    x = torch.zeros(2, 3)
    assert x.copy_(torch.arange(3)).tolist() == [[0, 1, 2], [0, 1, 2]]
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.copy_(torch.zeros(2, 2, 3))
    with pytest.raises(RuntimeError, match="must match the size"):
        x.copy_(torch.zeros(2))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.zeros(1).expand(3).copy_(torch.zeros(3))
    with pytest.raises(RuntimeError, match="fill_ only supports 0-dimension value tensor"):
        x.fill_(torch.zeros(2))
    y = torch.arange(5.0)
    y[1:].copy_(y[:-1])  # over itself: as if the source had been copied first
    assert y.tolist() == [0, 0, 1, 2, 3]


def test_resize_keeps_what_was_there():
    x = torch.arange(6)
    assert x.resize_(2, 2) is x and x.tolist() == [[0, 1], [2, 3]]
    y = x.resize_(2, 4)
    assert y.shape == (2, 4) and y.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    z = torch.arange(4)
    view = z[1:3]
    z.resize_(100)
    z[2] = 9
    assert view.tolist() == [1, 9]  # the memory grew for both
    assert x.resize_as_(torch.zeros(3, 1)).shape == (3, 1)
    assert torch.resize_as_(torch.zeros(1), torch.zeros(2, 2)).shape == (2, 2)
    held = np.zeros(2)
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.from_numpy(held).resize_(4)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        (torch.zeros(2, requires_grad=True) * 1).resize_(3)
    exported = torch.arange(2.0)
    array = exported.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):
        exported.resize_(1000)
    assert array.tolist() == [0, 1] and exported.tolist() == [0, 1]


def test_set_takes_over_memory():
    x, y = torch.zeros(3), torch.arange(4.0)
    assert x.set_(y) is x and x._is_same_storage(y) and x.shape == (4,)
    assert x.set_(y, 1, (2,), (2,)).tolist() == [1, 3]
    assert x.set_().shape == (0,)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        x.set_(y, 1, (4,), (1,))
    with pytest.raises(RuntimeError, match="Could not set tensor of type"):
        x.set_(torch.zeros(2, dtype=torch.int64))
