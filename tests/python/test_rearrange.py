"""Joining, repeating, turning and padding."""

import pytest

import tessera as torch

F = torch.nn.functional


@pytest.mark.parametrize("fuse", [False, True])
def test_cat_of_many(fuse):
    torch.fuse.set_mode("on" if fuse else "off")
    try:
        parts = [torch.arange(float(n), dtype=torch.float32) + n for n in range(300)]
        whole = torch.cat(parts)
        assert whole.tolist() == [n + i for n in range(300) for i in range(n)]
        rows = [torch.arange(12.0).view(3, 4).t()[:, :k] * k for k in (1, 0, 3, 2)]
        expected = [sum((r.tolist()[i] for r in rows), []) for i in range(4)]
        assert torch.cat(rows, 1).tolist() == expected
        assert torch.cat(rows, -1, out=torch.empty(0)).tolist() == expected
    finally:
        torch.fuse.set_mode("off")


def test_cat_of_large_pieces_in_parallel():
    a = torch.arange(600_000.0).view(2, 300, 1000)
    b = -a.transpose(1, 2).contiguous().transpose(1, 2)[:, :77]
    c = torch.cat([a, b, a[:, :0]], 1)
    assert torch.equal(c[:, :300], a) and torch.equal(c[:, 300:], b) and c.shape == (2, 377, 1000)


def test_cat_promotes_and_keeps_the_format():
    a = torch.zeros(1, 2, 3, 3).to(memory_format=torch.channels_last) + torch.arange(3.0)
    made = torch.cat([a, a + 1], 1)
    assert made.is_contiguous(memory_format=torch.channels_last)
    assert made.tolist() == torch.cat([a.contiguous(), a.contiguous() + 1], 1).tolist()
    assert torch.cat([torch.tensor([1]), torch.tensor([2.5])]).dtype == torch.float32
    assert torch.cat([torch.tensor([True]), torch.tensor([2j])]).dtype == torch.complex64
    assert torch.cat([torch.zeros(0), torch.zeros(2, 3)]).shape == (2, 3)
    with pytest.raises(ValueError, match="non-empty list of Tensors"):
        torch.cat([])
    with pytest.raises(RuntimeError, match="stack expects a non-empty TensorList"):
        torch.stack([])
    with pytest.raises(
        RuntimeError, match=r"equal size, but got \[2\] at entry 0 and \[3\] at entry 1"
    ):
        torch.stack([torch.zeros(2), torch.zeros(3)])
    with pytest.raises(TypeError, match="cat"):
        torch.cat(torch.zeros(2))
    x = torch.zeros(2, requires_grad=True)
    y = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    torch.cat([x, y]).sum().backward()
    assert x.grad.dtype == torch.float32 and y.grad.shape == (3,)


@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex128", "float16"])
def test_flips_and_rolls_of_any_size(dtype, fuse):
    torch.fuse.set_mode("on" if fuse else "off")
    try:
        x = torch.tensor([k % 11 for k in range(70 * 90)]).view(70, 90).to(getattr(torch, dtype))
        rows = x.tolist()
        assert x.flip(0).tolist() == rows[::-1]
        assert x.flip(1).tolist() == [r[::-1] for r in rows]
        assert x.t().flip(0, 1).t().tolist() == [r[::-1] for r in rows[::-1]]
        assert x.roll((3, -2), (0, 1)).tolist() == [r[2:] + r[:2] for r in rows[-3:] + rows[:-3]]
        flat = sum(rows, [])
        assert x.roll(100).flatten().tolist() == flat[-100:] + flat[:-100]
        assert x.roll((1, 1, -2), (0, 0, 0)).tolist() == rows
        assert torch.rot90(x).tolist() == [list(c) for c in zip(*rows)][::-1]
    finally:
        torch.fuse.set_mode("off")


def test_second_derivatives_of_padding():
    for mode, pad in (
        ("reflect", (2, 1, 1, 2)),
        ("replicate", (2, -1, 1, 3)),
        ("circular", (-1, 2, 2, -2)),
        ("constant", (1, -2, 0, 2)),
    ):
        x = torch.arange(40.0, dtype=torch.float64).view(2, 1, 4, 5).requires_grad_()
        y = F.pad(x * x, pad, mode)
        w = torch.arange(float(y.numel()), dtype=torch.float64).view(y.shape)
        (g,) = torch.autograd.grad((y * w).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        (once,) = torch.autograd.grad((F.pad(x, pad, mode) * w).sum(), x)
        assert torch.equal(h, 2 * once)


def test_padding_by_place():
    x = torch.arange(4.0).view(1, 4)
    assert F.pad(x, (2, 1), "reflect").tolist() == [[2, 1, 0, 1, 2, 3, 2]]
    assert F.pad(x, (-1, 2), "reflect").tolist() == [[1, 2, 3, 2, 1]]
    assert F.pad(x, (2, 1), "replicate").tolist() == [[0, 0, 0, 1, 2, 3, 3]]
    assert F.pad(x, (2, 1), "circular").tolist() == [[2, 3, 0, 1, 2, 3, 0]]
    assert F.pad(x, (-1, 2), "circular").tolist() == [[1, 2, 3, 1, 2]]
    assert F.pad(x, (1, 0, 0, 1), value=7).tolist() == [[7, 0, 1, 2, 3], [7] * 5]
    for args, error, words in (
        (((1,),), RuntimeError, "divisible by 2"),
        (((1, 1, 1, 1, 1, 1),), RuntimeError, "two times the input dimension"),
        (((4, 0), "reflect"), RuntimeError, "less than the corresponding input dimension"),
        (((5, 0), "circular"), RuntimeError, "wrapping around more than once"),
        (((1, 1), "mirror"), NotImplementedError, "Unrecognised padding mode mirror"),
        (((1, 1), "reflect", 2.0), RuntimeError, "doesn't take in value argument"),
        (((-3, -3),), RuntimeError, "resulted in a negative output size"),
        (((1, 1, 1, 1), "reflect"), NotImplementedError, "Only 2D, 3D, 4D, 5D padding"),
    ):
        with pytest.raises(error, match=words):
            F.pad(x, *args)


def test_fold_is_the_transpose_of_unfold():
    x = torch.arange(2 * 3 * 6 * 5, dtype=torch.float64).view(2, 3, 6, 5)
    for options in ({}, {"padding": 1, "stride": 2}, {"dilation": (2, 1), "padding": (0, 2)}):
        columns = F.unfold(x, (2, 3), **options)
        y = torch.arange(float(columns.numel()), dtype=torch.float64).view(columns.shape)
        a, b = (columns * y).sum(), (x * F.fold(y, (6, 5), (2, 3), **options)).sum()
        assert a.item() == b.item()
    with pytest.raises(RuntimeError, match="its components must be at least one"):
        F.unfold(x, 7)
    with pytest.raises(RuntimeError, match="kernel size should be greater than zero"):
        F.unfold(x, 0)
    with pytest.raises(RuntimeError, match="divisible by the product of kernel_size"):
        F.fold(torch.zeros(1, 5, 4), 3, 2)


def test_windows_along_a_dimension_add_up_backwards():
    x = torch.arange(20.0, dtype=torch.float64).requires_grad_()
    for size, step in ((3, 2), (15, 3), (1, 4), (20, 1)):
        (g,) = torch.autograd.grad(x.unfold(0, size, step).sum(), x)
        counts = [0] * 20
        for start in range(0, 20 - size + 1, step):
            for i in range(size):
                counts[start + i] += 1
        assert g.tolist() == counts
    with pytest.raises(
        RuntimeError, match="maximum size for tensor at dimension 0 is 20 but size is 21"
    ):
        x.unfold(0, 21, 1)


def test_repeats():
    x = torch.tensor([1, 2, 3])
    assert x.repeat_interleave(2).tolist() == [1, 1, 2, 2, 3, 3]
    assert torch.repeat_interleave(x, torch.tensor([2, 0, 1])).tolist() == [1, 1, 3]
    assert torch.repeat_interleave(torch.tensor([0, 2])).tolist() == [1, 1]
    assert x.repeat(2, 2).tolist() == [[1, 2, 3, 1, 2, 3]] * 2
    assert x.expand(2, 3).tile((2,)).shape == (2, 6)
    for bad, words in (
        (lambda: x.repeat_interleave(torch.tensor([1, 2])), "same size as input along dim"),
        (lambda: x.repeat_interleave(torch.tensor([1, -2, 1])), "repeats can not be negative"),
        (lambda: x.repeat_interleave(torch.tensor([1.0, 2, 1])), "repeats has to be Long or Int"),
        (lambda: x.expand(2, 3).repeat(2), "can not be smaller than number of dimensions"),
    ):
        with pytest.raises(RuntimeError, match=words):
            bad()


def test_one_hot_and_places():
    assert F.one_hot(torch.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(torch.tensor(1), 4).tolist() == [0, 1, 0, 0]
    assert F.one_hot(torch.zeros(0, dtype=torch.int64), 3).shape == (0, 3)
    for bad, words in (
        (lambda: F.one_hot(torch.tensor([1.0])), "LongTensor"),
        (lambda: F.one_hot(torch.tensor([-1])), "non-negative"),
        (lambda: F.one_hot(torch.tensor([3]), 3), "smaller than num_classes"),
        (lambda: F.one_hot(torch.zeros(0, dtype=torch.int64)), "infer total number of classes"),
    ):
        with pytest.raises(RuntimeError, match=words):
            bad()
    places = torch.unravel_index(torch.tensor([5, 11, -1]), (3, 4))
    assert [p.tolist() for p in places] == [[1, 2, 2], [1, 3, 3]]
    with pytest.raises(TypeError, match="expected 'indices' to be integer dtype"):
        torch.unravel_index(torch.tensor([1.0]), (3,))
    with pytest.raises(ValueError, match="cannot have negative values"):
        torch.unravel_index(torch.tensor([1]), (3, -1))


def test_triangles_in_place_and_of_any_dtype():
    for dtype in (torch.float32, torch.int16, torch.bool, torch.complex64, torch.bfloat16):
        x = torch.ones(3, 4).to(dtype)
        assert x.tril(1).to(torch.float32).sum().item() == 9
        assert x.triu(-1).to(torch.float32).tolist() == [[1] * 4, [1] * 4, [0, 1, 1, 1]]
    y = torch.ones(3, 3)
    assert y.tril_() is y and y.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    z = torch.ones(3, 3, requires_grad=True)
    (z * 1).triu_().sum().backward()
    assert z.grad.tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
