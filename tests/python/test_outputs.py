"""What out= and dtype= together ask for, and which tensors results may be written into."""

import pytest

import tessera as torch

F64, I64 = torch.float64, torch.int64


def made(*dtypes):
    outs = tuple(torch.empty(0, dtype=t) for t in dtypes)
    return outs if len(outs) > 1 else outs[0]


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian", "mode", "cummax", "cummin"])
def test_values_and_indices_go_into_their_own_dtypes(name):
    x, f = torch.tensor([3.0, 1.0, 2.0]), getattr(torch, name)
    for wrong in ((x.dtype, torch.float32), (x.dtype, torch.int32), (F64, I64)):
        with pytest.raises(RuntimeError, match="to have dtype"):
            f(x, 0, out=made(*wrong))
    values, indices = f(x, 0, out=made(x.dtype, I64))
    assert values.equal(f(x, 0)[0]) and indices.equal(f(x, 0)[1])


def test_other_results_with_indices():
    x = torch.tensor([3.0, 1.0, 2.0])
    for call in (
        lambda out: torch.sort(x, out=out),
        lambda out: torch.topk(x, 2, out=out),
        lambda out: torch.kthvalue(x, 1, out=out),
        lambda out: torch.frexp(x, out=out),
        lambda out: torch.linalg.lu_factor(torch.eye(2), out=out),
    ):
        with pytest.raises(RuntimeError, match="to have dtype"):
            call(made(torch.float32, torch.float32))


def test_positions_go_into_integers():
    x = torch.tensor([3.0, 1.0, 2.0])
    for call in (
        lambda out: torch.argmax(x, 0, out=out),
        lambda out: torch.argmin(x, 0, out=out),
        lambda out: torch.nonzero(x, out=out),
        lambda out: torch.searchsorted(x.sort()[0], x, out=out),
        lambda out: torch.bucketize(x, x.sort()[0], out=out),
    ):
        for wrong in (torch.float32, torch.int32):
            with pytest.raises(RuntimeError, match="out tensor to have dtype long int, but got"):
                call(made(wrong))
        assert call(made(I64)).dtype == I64


def test_what_is_copied_or_multiplied_keeps_its_dtype():
    x = torch.ones(2, 2)
    for call in (
        lambda out: torch.mm(x, x, out=out),
        lambda out: torch.matmul(x, x, out=out),
        lambda out: torch.bmm(x[None], x[None], out=out),
        lambda out: torch.index_select(x, 0, torch.tensor([0]), out=out),
        lambda out: torch.take(x, torch.tensor([0]), out=out),
        lambda out: torch.amax(x, 0, out=out),
        lambda out: torch.amin(x, 0, out=out),
    ):
        with pytest.raises(RuntimeError, match="out tensor to have dtype float, but got double"):
            call(made(F64))
        assert call(made(torch.float32)).dtype == torch.float32


def test_a_dtype_that_is_said_is_that_of_the_output():
    out, x = torch.empty(3, dtype=F64), torch.ones(3)
    for call in (
        lambda **k: torch.zeros(3, **k),
        lambda **k: torch.full((3,), 1, **k),
        lambda **k: torch.arange(3, **k),
        lambda **k: torch.linspace(0, 1, 3, **k),
        lambda **k: torch.eye(3, **k),
        lambda **k: torch.rand(3, **k),
        lambda **k: torch.sum(x, 0, **k),
        lambda **k: torch.cumsum(x, 0, **k),
        lambda **k: torch.softmax(x, 0, **k),
    ):
        with pytest.raises(RuntimeError, match="does not match dtype of out parameter"):
            call(dtype=torch.float32, out=out)
        assert call(dtype=F64, out=out) is out and out.dtype == F64
        out = torch.empty(3, dtype=F64)
    with pytest.raises(RuntimeError, match="does not match device of out parameter"):
        torch.zeros(3, device="meta", out=out)


def test_numbers_in_steps_keep_the_shape_of_an_output_that_has_room():
    for call in (
        lambda out: torch.arange(6, out=out),
        lambda out: torch.range(0, 5, out=out),
        lambda out: torch.linspace(0, 5, 6, out=out),
    ):
        out = torch.empty(2, 3)
        assert call(out) is out and out.tolist() == [[0, 1, 2], [3, 4, 5]]
        turned = torch.empty(3, 2).t()
        assert call(turned).tolist() == [[0, 1, 2], [3, 4, 5]] and turned.stride() == (1, 2)
        assert call(torch.empty(5)).tolist() == [0, 1, 2, 3, 4, 5]
    assert torch.zeros(6, out=torch.empty(2, 3)).shape == (6,)
    assert torch.eye(3, out=torch.empty(9)).shape == (3, 3)
