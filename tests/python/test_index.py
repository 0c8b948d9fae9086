"""x[...] and x[...] = y against NumPy, with PyTorch's rules where the two differ: views are made
first, from left to right, and index tensors name the dimensions of what is left."""

import itertools

import numpy as np
import pytest

import tessera as torch

PARTS = [
    0,
    -1,
    slice(None),
    slice(1, None),
    slice(None, None, 2),
    slice(5, 1),
    None,
    Ellipsis,
    True,
    False,
    [0, 1],
    [[0], [1]],
    np.array([1, 0]),
    np.array([True, False]),
    np.array([0, -1, 1]),
    np.array([[True, False, True], [False, False, True]]),
]


def as_tensor(part):
    return torch.tensor(part.tolist()) if isinstance(part, np.ndarray) else part


def reference(x, index):
    """What the index reads, by NumPy in two steps; what writes takes the same two."""
    taken = sum(
        (part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1)
        for part in index
        if part is not None and part is not Ellipsis and not isinstance(part, bool)
    )
    views, tensors = [], []
    for part in index:
        if part is Ellipsis:
            rest = x.ndim - taken
            views += [slice(None)] * rest
            tensors += [slice(None)] * rest
        elif part is None:
            views.append(None)
            tensors.append(slice(None))
        elif isinstance(part, bool):
            views.append(None)
            tensors.append(np.arange(int(part)))
        elif isinstance(part, slice):
            views.append(part)
            tensors.append(slice(None))
        elif isinstance(part, int):
            views.append(part)
        else:
            array = np.asarray(part)
            views += [slice(None)] * (array.ndim if array.dtype == bool else 1)
            tensors.append(array)
    return x[(*views, ...)], tuple(tensors)


def indices():
    for n in (1, 2, 3):
        for chosen in itertools.product(range(len(PARTS)), repeat=n):
            if n < 3 or sum(chosen) % 5 == 0:
                index = tuple(PARTS[i] for i in chosen)
                if sum(part is Ellipsis for part in index) < 2:
                    yield index


def test_reads_are_numpys(device):
    x = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    mine = torch.from_numpy(x).to(device)
    agreed = refused = 0
    for index in indices():
        try:
            view, tensors = reference(x, index)
            expected = view[tensors]
        except IndexError:
            with pytest.raises(IndexError):
                mine[tuple(map(as_tensor, index))].tolist()
            refused += 1
            continue
        out = mine[tuple(map(as_tensor, index))]
        assert tuple(out.shape) == expected.shape, index
        assert out.tolist() == expected.tolist(), index
        agreed += 1
    assert agreed > 500 and refused > 100


@pytest.mark.parametrize("rows", ["contiguous", "transposed"])
def test_writes_are_numpys(rows, device):
    start = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    for index in indices():
        x = start.copy()
        if rows == "transposed":
            x = np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0)
        mine = torch.from_numpy(x.copy(order="K")).to(device)
        try:
            view, tensors = reference(x, index)
            values = view[tensors] * 3 + 100
            view[tensors] = values
        except IndexError:
            continue
        mine[tuple(map(as_tensor, index))] = torch.from_numpy(np.ascontiguousarray(values)).to(
            device
        )
        assert mine.tolist() == x.tolist(), index
        mine[tuple(map(as_tensor, index))] = -1
        view[tensors] = -1
        assert mine.tolist() == x.tolist(), index


def test_a_view_where_no_tensor_is_in_the_index():
    x = torch.zeros(3, 4)
    for index in (0, slice(1, 2), None, Ellipsis, (Ellipsis, 1), (slice(None), None)):
        assert x[index]._is_same_storage(x) and x[index] is not x
    assert x[torch.tensor(1)]._is_same_storage(x)
    for index in ([0], torch.tensor([0]), x == 0.0, True):
        assert not x[index]._is_same_storage(x)


@pytest.mark.parametrize(
    "index, error, words",
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        ([0, 5], IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        ([0, -4], IndexError, "index -4 is out of bounds for dimension 0 with size 3"),
        ((slice(None), [4]), IndexError, "index 4 is out of bounds for dimension 1 with size 4"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (
            ([0, 1], [0, 1, 2]),
            IndexError,
            r"shape mismatch: indexing tensors could not be broadcast together with shapes "
            r"\[2\], \[3\]",
        ),
        (
            [True, False],
            IndexError,
            r"The shape of the mask \[2\] at index 0 does not match the shape of the indexed "
            r"tensor \[3, 4\] at index 0",
        ),
        (1.0, IndexError, r"only integers, slices \(`:`\), ellipsis .* \(got float\)"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
    ],
)
def test_errors_name_what_was_wrong(index, error, words):
    x = torch.zeros(3, 4)
    with pytest.raises(error, match=words):
        x[index]
    before = x.tolist()
    with pytest.raises(error, match=words):
        x[index] = 1.0
    assert x.tolist() == before  # nothing is written where an index is wrong


def test_values_that_do_not_fit():
    x = torch.zeros(3, 4)
    with pytest.raises(
        RuntimeError,
        match=r"shape mismatch: value tensor of shape \[3\] cannot be broadcast to indexing result "
        r"of shape \[2, 4\]",
    ):
        x[[0, 1]] = torch.ones(3)
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x[[0, 1]] = torch.ones(4, dtype=torch.int64)
    with pytest.raises(RuntimeError, match=r"The expanded size of the tensor \(4\)"):
        x[0] = torch.ones(3)
    with pytest.raises(RuntimeError, match="without overflow"):
        x[0] = 1j
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.zeros(3, dtype=torch.uint8)[[0]] = 300
    with pytest.raises(RuntimeError, match="single memory location"):
        x[[0, 1, 2]] = x
    with pytest.raises(TypeError, match="deleting"):
        del x[0]
    assert not any(map(any, x.tolist()))


def test_wrong_types_of_index():
    x = torch.zeros(3)
    with pytest.raises(IndexError, match="must be long, int, byte or bool"):
        x[torch.tensor([0], dtype=torch.int8)]
    with pytest.raises(IndexError, match="must be long, int, byte or bool"):
        x[torch.tensor([0.0])]
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        torch.tensor(1.0)[0]
    with pytest.raises(IndexError, match="out of bounds for dimension with size 0"):
        torch.zeros(0, 3)[[0]]


def test_a_list_of_parts_stands_for_the_tuple():
    x = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        out = x[[slice(0, 2), [0, 3]]]
    assert out.tolist() == x[0:2, [0, 3]].tolist()


def test_adding_with_repeated_positions(device):
    x = torch.zeros(3, device=device)
    x[[0, 0, 2]] += 1.0  # read, added, written: the last one counts
    assert x.tolist() == [1, 0, 1]
    at = torch.tensor([0, 0, 2], device=device)
    x.index_put_((at,), torch.ones(3, device=device), accumulate=True)
    assert x.tolist() == [3, 0, 2]


def test_accumulation_does_not_depend_on_threads():
    torch.manual_seed(0)
    n = 200_000
    values = torch.randn(n)
    at = (torch.rand(n) * 999).to(torch.int64)
    expected = np.zeros(1000, dtype=np.float32)
    for i, v in zip(at.tolist(), values.tolist()):
        expected[i] += np.float32(v)
    out = torch.zeros(1000).index_put_((at,), values, accumulate=True)
    assert out.tolist() == expected.tolist()
    pairs = values.reshape(n, 1).expand(n, 3)
    rows = torch.zeros(1000, 3).index_add_(0, at, pairs)
    assert rows[:, 1].tolist() == expected.tolist()
    sums = torch.zeros(1000, 3).scatter_add_(0, at.reshape(n, 1).expand(n, 3), pairs)
    assert sums[:, 2].tolist() == expected.tolist()


def test_gradients_through_writes(device):
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    v = torch.tensor([10.0, 20.0], requires_grad=True)
    y = (x * 1.0).to(device)
    y[[1, 3]] = v.to(device)
    y[0:2] *= 2.0
    (y * torch.tensor([1.0, 10.0, 100.0, 1000.0], device=device)).sum().backward()
    assert x.grad.tolist() == [2, 0, 100, 0]
    assert v.grad.tolist() == [20, 1000]


def test_gradients_through_a_mask_of_a_view():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    base = x * 1.0
    view = base[1]
    version = base._version
    view[torch.tensor([True, False])] = 7.0
    assert base._version > version
    base.sum().backward()
    assert base.tolist() == [[1, 2], [7, 4]]
    assert x.grad.tolist() == [[1, 1], [0, 1]]


def test_second_derivatives():
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    at = torch.tensor([0, 0, 2])
    y = x[at]
    (g,) = torch.autograd.grad((y * y * y).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [12, 0, 18]


def test_saved_indices_are_guarded():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    at = torch.tensor([0, 1])
    y = x[at]
    at[0] = 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_leaves_are_not_written():
    x = torch.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x[[0]] = 1.0
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.index_fill_(0, torch.tensor([0]), 1.0)


def test_expanded_tensors_are_not_written():
    x = torch.zeros(1).expand(3)
    for write in (
        lambda: x.index_fill_(0, torch.tensor([0]), 1.0),
        lambda: x.scatter_(0, torch.tensor([0]), 1.0),
        lambda: x.index_put_((torch.tensor([0]),), torch.tensor(1.0)),
    ):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write()


def test_contains():
    x = torch.tensor([1.0, 2.0])
    assert 2.0 in x and 3 not in x and torch.tensor(1.0) in x
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in x  # noqa: B015


def test_shapes_on_meta():
    x = torch.zeros(3, 4, device="meta")
    at = torch.zeros(2, dtype=torch.int64, device="meta")
    assert x[at].shape == (2, 4) and x[:, at].shape == (3, 2)
    assert x.index_select(1, at).shape == (3, 2)
    assert x.index_add(0, at, torch.zeros(2, 4, device="meta")).shape == (3, 4)
    both = torch.zeros(2, 4, dtype=torch.int64, device="meta")
    assert x.gather(0, both).shape == (2, 4)
    assert x.scatter_add(0, both, torch.zeros(2, 4, device="meta")).shape == (3, 4)
    with pytest.raises(NotImplementedError):
        x.nonzero()
