"""Views: geometry, gradients through them, views made in place, and what is refused."""

import pytest

import tessera as torch


def grads(out, *inputs):
    weights = torch.arange(float(out.numel()), dtype=out.dtype).view(out.shape) + 1
    return torch.autograd.grad((out * weights).sum(), inputs)


def test_as_strided_is_bounded_by_the_storage():
    x = torch.arange(6.0)
    assert torch.as_strided(x, (2, 2), (2, 1), 1).tolist() == [[1, 2], [3, 4]]
    assert x[2:].as_strided((2,), (1,), 0).tolist() == [0, 1]
    for size, stride, offset in (((2, 2), (4, 2), 0), ((7,), (1,), 0), ((6,), (1,), 1)):
        with pytest.raises(RuntimeError, match="out of bounds for storage of size 24"):
            x.as_strided(size, stride, offset)
    with pytest.raises(RuntimeError, match="Negative strides"):
        x.as_strided((2,), (-1,), 3)
    with pytest.raises(RuntimeError, match="mismatch in length of strides and shape"):
        x.as_strided((2,), (1, 1))
    assert x.as_strided((0, 9), (1, 1), 0).shape == (0, 9)


@pytest.mark.parametrize(
    "size, stride, offset", [((2, 2), (4, 1), 1), ((3, 2), (1, 1), 0), ((2, 3), (0, 1), 2)]
)
def test_gradient_of_as_strided_adds_up(size, stride, offset):
    x = torch.arange(12.0, dtype=torch.float64).requires_grad_()
    (g,) = grads(x.as_strided(size, stride, offset), x)
    expected = [0.0] * 12
    for i in range(size[0]):
        for j in range(size[1]):
            expected[offset + i * stride[0] + j * stride[1]] += 1 + i * size[1] + j
    assert g.tolist() == expected
    # Of a transposed tensor the places are counted in its memory.
    y = torch.arange(12.0, dtype=torch.float64).view(3, 4).t().requires_grad_()
    (g,) = grads(y.as_strided(size, stride, offset), y)
    assert g.t().reshape(-1).tolist() == expected


def test_as_strided_scatter():
    x = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    s = torch.ones(2, dtype=torch.float64, requires_grad=True)
    out = torch.as_strided_scatter(x, s, (2,), (4,), 1)
    assert out.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    gx, gs = grads(out, x, s)
    assert gx.tolist() == [[1, 0, 3], [4, 5, 0], [7, 8, 9]] and gs.tolist() == [2, 6]
    whole = torch.arange(10.0)
    out = whole[2:6].as_strided_scatter(torch.tensor([-1.0, -2.0]), (2,), (2,), 3)
    assert out.tolist() == [2, -1, 4, -2] and whole.tolist() == list(range(10))
    with pytest.raises(RuntimeError, match="requiring a storage size of 1604"):
        torch.as_strided_scatter(torch.zeros(4, 4), torch.zeros(2, 2), (2, 2), (200, 200), 0)


def test_in_place_views_change_the_tensor_itself():
    x = torch.arange(6).view(2, 3)
    before = x._version
    assert x.t_() is x and x.shape == (3, 2) and x.stride() == (1, 3)
    assert x.unsqueeze_(0).shape == (1, 3, 2)
    assert x.swapaxes_(0, 2).shape == (2, 3, 1)
    assert x.squeeze_(2).shape == (2, 3) and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.transpose_(0, -1).swapdims_(0, 1).squeeze_().shape == (2, 3)
    assert x._version > before


def test_gradients_pass_in_place_views():
    leaf = torch.arange(6.0, dtype=torch.float64).view(2, 3).requires_grad_()
    x = leaf * 2
    x.t_()
    (g,) = grads(x, leaf)
    assert g.tolist() == [[2, 6, 10], [4, 8, 12]]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.t_()
    # A view that is transposed in place is still one of its base.
    y = leaf * 1
    v = y[:, 1:]
    v.t_()
    v.mul_(10)
    (g,) = grads(y, leaf)
    assert g.tolist() == [[1, 20, 30], [4, 50, 60]]
    # A view of what was transposed in place since is not silently another one.
    y = leaf * 1
    v = y[0]
    y.t_()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="make the view again"):
        v.sum().backward()


def test_view_as_another_dtype():
    x = torch.tensor([1.0, -2.0])
    assert x.view(torch.int32).tolist() == [0x3F800000, 0xC0000000 - 2**32]
    assert x.view(torch.int16).shape == (4,) and x.view(torch.uint8).view(
        torch.float32
    ).tolist() == [1, -2]
    assert x.view(torch.float64).shape == (1,)
    assert torch.zeros(3, dtype=torch.complex64).view(torch.float32).shape == (6,)
    y = torch.zeros(2, requires_grad=True) * 1
    assert not y.view(torch.int32).requires_grad
    for bad, words in (
        (torch.tensor(1.0), r"self.dim\(\) cannot be 0 to view Float as Half"),
        (torch.zeros(4)[::2], r"self.stride\(-1\) must be 1 to view Float as Half"),
    ):
        with pytest.raises(RuntimeError, match=words):
            bad.view(torch.float16)
    with pytest.raises(RuntimeError, match=r"self.size\(-1\) must be divisible by 2"):
        torch.zeros(3).view(torch.float64)


def test_shapes_that_do_not_fit():
    x = torch.zeros(2, 3)
    for shape, words in (
        ((4,), r"shape '\[4\]' is invalid for input of size 6"),
        ((-1, -1), "only one dimension can be inferred"),
        ((-2, 3), "invalid shape dimension -2"),
        ((4, -1), r"shape '\[4, -1\]' is invalid for input of size 6"),
    ):
        for call in (x.view, x.reshape):
            with pytest.raises(RuntimeError, match=words):
                call(shape)
    with pytest.raises(RuntimeError, match="cannot reshape tensor of 0 elements"):
        torch.zeros(0).view(-1, 0)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.t().view(6)
    with pytest.raises(RuntimeError, match="unflatten: Provided sizes"):
        x.unflatten(1, (2, 2))
    with pytest.raises(RuntimeError, match="start_dim cannot come after end_dim"):
        x.flatten(1, 0)
    with pytest.raises(RuntimeError, match="non-singleton dimension 1"):
        x.expand(2, 4)


def test_pieces_share_memory_and_a_node():
    x = torch.arange(10.0, requires_grad=True)
    a, b, c = x.split([2, 3, 5])
    assert repr(a.grad_fn) == repr(b.grad_fn) and a.grad_fn is not None
    g = torch.autograd.grad((a * 2).sum() + c.sum(), x)[0]
    assert g.tolist() == [2, 2, 0, 0, 0, 1, 1, 1, 1, 1]
    assert torch.split(tensor=x, split_size_or_sections=4)[2].tolist() == [8, 9]
    y = torch.zeros(4)
    for piece in y.chunk(2):
        piece.fill_(piece.storage_offset())
    assert y.tolist() == [0, 0, 2, 2]
    for bad, words in (
        (lambda: x.split([1, 2]), "split_sizes to sum exactly to 10"),
        (lambda: x.split(-1), "split_size be non-negative"),
        (lambda: x.split(0), "split_size can only be 0"),
        (lambda: x.chunk(0), "`chunks` to be greater than 0"),
        (lambda: x.tensor_split(0), "number of sections must be larger than 0"),
        (lambda: torch.hsplit(x, 3), "is not divisible by the split_size 3"),
    ):
        with pytest.raises(RuntimeError, match=words):
            bad()


def test_matrix_properties():
    x = torch.zeros(2, 3, 4)
    assert x.T.shape == (4, 3, 2) and x.mT.shape == (2, 4, 3) and x.mH.shape == (2, 4, 3)
    assert x[0].H.shape == (4, 3)
    with pytest.raises(RuntimeError, match="consider using tensor.mH"):
        x.H
    with pytest.raises(RuntimeError, match="tensor.mT is only supported on matrices"):
        torch.zeros(2).mT


def test_lists_spread_out():
    a, b = torch.zeros(2), torch.zeros(3, 1)
    for grids in (torch.meshgrid(a, b[:, 0]), torch.meshgrid([a, b[:, 0]], indexing="ij")):
        assert [g.shape for g in grids] == [(2, 3), (2, 3)]
    assert torch.meshgrid(a, b[:, 0], indexing="xy")[0].shape == (3, 2)
    assert [t.shape for t in torch.broadcast_tensors(a, b)] == [(3, 2), (3, 2)]
    assert torch.atleast_2d(a).shape == (1, 2)
    assert [t.shape for t in torch.atleast_3d(a, b)] == [(1, 2, 1), (3, 1, 1)]
    assert torch.broadcast_shapes((2, 1), 3, (1,)) == (2, 3)
    with pytest.raises(RuntimeError, match="Shape mismatch"):
        torch.broadcast_shapes((2,), (3,))
    with pytest.raises(TypeError, match="block_diag"):
        torch.block_diag(a, 3)


def test_copies_of_views_do_not_share():
    x = torch.arange(6.0).view(2, 3)
    for made in (
        torch.slice_copy(x, 1, 1, 3),
        torch.as_strided_copy(x, (2, 2), (3, 1)),
        torch.permute_copy(x, (1, 0)),
        torch.expand_copy(x[:1], (4, 3)),
        torch.view_copy(x, torch.int32),
        *torch.unbind_copy(x),
    ):
        assert not made._is_same_storage(x) and made.is_contiguous()
    outs = [torch.empty(0), torch.empty(0)]
    torch.split_copy(x, 1, out=outs)
    assert [t.tolist() for t in outs] == [[[0, 1, 2]], [[3, 4, 5]]]


def test_result_types():
    assert torch.result_type(torch.tensor([1]), 1.5) == torch.float32
    assert (
        torch.result_type(
            torch.tensor([1.0], dtype=torch.float16), torch.tensor(1.0, dtype=torch.float64)
        )
        == torch.float16
    )
    assert torch.result_type(2, 1j) == torch.complex64
    assert torch.can_cast(from_=torch.int32, to=torch.float16)
    assert torch.promote_types(torch.uint8, torch.int8) == torch.int16
    assert torch.is_same_size(torch.zeros(2), torch.ones(2)) is True


def test_views_of_no_dimensions_keep_their_dtype():
    for x in (torch.tensor(4, dtype=torch.int8), torch.tensor(4.5), torch.tensor(1 + 2j)):
        for view in (torch.movedim(x, (), ()), torch.movedim(x, 0, -1), torch.adjoint(x)):
            assert view.dtype == x.dtype and view.shape == ()
        assert torch.movedim(x, 0, 0).item() == x.item()
