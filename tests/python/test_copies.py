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
