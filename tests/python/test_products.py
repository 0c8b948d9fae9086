"""Matrix products of all dtypes, and einsum's grammar."""

import numpy as np
import pytest

import tessera as torch


def draw(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 9, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)


EQUATIONS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ba", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("iji->j", [(3, 2, 3)]),
    ("iii->i", [(3, 3, 3)]),
    ("i,j->ij", [(2,), (3,)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
    ("...,...", [(2, 3), (2, 3)]),
    ("i...->...", [(2, 3, 4)]),
    ("i...,j...->ij...", [(2, 3), (4, 3)]),
    ("a...a->...", [(3, 2, 3)]),
    ("ij , jk -> i k", [(2, 3), (3, 4)]),
    ("ij,jk,kl,lm->im", [(2, 3), (3, 4), (4, 5), (5, 2)]),
    ("ijk,il,jm,kn->lmn", [(2, 3, 4), (2, 5), (3, 5), (4, 5)]),
    ("a,b,c,d,e,f,g->acg", [(2,)] * 7),
    ("ij,j->ij", [(2, 3), (3,)]),
    ("Ab,bA->A", [(2, 3), (3, 2)]),
    ("i,i,i->i", [(3,), (3,), (3,)]),
    ("ij,kj->ik", [(0, 3), (2, 3)]),
    ("ij,jk->ik", [(2, 0), (0, 3)]),
]


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
@pytest.mark.parametrize("equation, shapes", EQUATIONS, ids=str)
def test_einsum(equation, shapes, dtype, device):
    host = [draw(s, dtype, i) for i, s in enumerate(shapes)]
    found = torch.einsum(equation, *[torch.from_numpy(x).to(device) for x in host])
    expected = np.einsum(equation.replace(" ", ""), *host)
    assert found.shape == expected.shape and found.dtype == getattr(torch, dtype)
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-10, atol=1e-10)


def test_einsum_forms():
    a, b = torch.from_numpy(draw((2, 3))), torch.from_numpy(draw((3, 4), seed=1))
    expected = a @ b
    for found in (
        torch.einsum("ij,jk", [a, b]),
        torch.einsum(a, [0, 1], b, [1, 2], [0, 2]),
        torch.einsum(a, [0, 1], b, [1, 2]),
        torch.einsum(a, [Ellipsis, 1], b, [1, 51], [Ellipsis, 51]),
    ):
        np.testing.assert_allclose(found.numpy(), expected.numpy())
    broadcast = torch.einsum("ij,ij->ij", a, a[:1])  # a size of one goes with any
    np.testing.assert_allclose(broadcast.numpy(), (a * a[:1]).numpy())


@pytest.mark.parametrize(
    "equation, shapes, message",
    [
        ("ij", [(2,)], r"number of subscripts in the equation \(2\) is more than"),
        ("i", [(2, 3)], "does not match the number of dimensions"),
        ("ij,jk", [(2, 3)], "fewer operands were provided"),
        ("ij", [(2, 3), (2, 3)], "more operands were provided"),
        ("i1", [(2, 3)], "invalid subscript given at index 1"),
        ("i.", [(2, 3)], "not part of any ellipsis"),
        ("......", [(2, 3)], "ellipsis was already found"),
        ("ij->k", [(2, 3)], "output subscript k does not appear"),
        ("ij->ii", [(2, 3)], "appears more than once in the output"),
        ("ii", [(2, 3)], "is repeated for operand 0 but the sizes don't match"),
        (
            "ij,jk",
            [(2, 3), (4, 2)],
            "subscript j has size 4 for operand 1 which does not broadcast",
        ),
    ],
)
def test_einsum_refuses(equation, shapes, message):
    with pytest.raises(RuntimeError, match=message):
        torch.einsum(equation, *[torch.ones(s) for s in shapes])


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "int32", "int64", "float32", "complex64", "complex128"]
)
def test_products(dtype, device):
    a, b, v = draw((3, 4), dtype), draw((4, 5), dtype, 1), draw((4,), dtype, 2)
    ta, tb, tv = (torch.from_numpy(x).to(device) for x in (a, b, v))

    def same(t, expected):
        np.testing.assert_allclose(t.cpu().numpy(), expected, rtol=1e-4, atol=1e-4)

    same(ta @ tb, a @ b)
    same(torch.mv(ta, tv), a @ v)
    same(torch.dot(tv, tv), v @ v)
    same(torch.vdot(tv, tv), np.vdot(v, v))
    same(torch.inner(ta, tv), np.inner(a, v))
    same(torch.outer(tv, tv), np.outer(v, v))
    same(torch.addmm(tb[:3], ta, tb, beta=2, alpha=3), 2 * b[:3] + 3 * (a @ b))
    same(torch.tensordot(ta, tb, 1), a @ b)
    same(torch.tensordot(ta, tb, ([1], [0])), a @ b)
    same(torch.linalg.multi_dot([ta, tb, tb.mT]), a @ b @ b.T)
    same(torch.chain_matmul(ta, tb, tb.mT), a @ b @ b.T)
    same(torch.nn.functional.linear(ta, tb.mT, tb[0]), a @ b + b[0])


def test_zero_beta_ignores_what_is_there():
    nan = torch.full((2, 2), float("nan"))
    one = torch.ones(2, 2)
    for found in (
        torch.addmm(nan, one, one, beta=0),
        torch.addmv(nan[0], one, one[0], beta=0),
        torch.addr(nan, one[0], one[0], beta=0),
        torch.baddbmm(nan, one.expand(3, 2, 2), one.expand(3, 2, 2), beta=0),
    ):
        assert not found.isnan().any()


def test_half_is_rounded_once():
    """4096 ones and a small one: a sum in half would stop at 2048."""
    a = torch.ones(1, 4097).half()
    assert (a @ torch.ones(4097, 1).half()).item() == 4096
    assert torch.addmm(torch.ones(1, 1).half(), a, torch.ones(4097, 1).half()).item() == 4096


def test_tensordot_writes_into_its_own_dtype_only():
    a = torch.ones(2, 2)
    assert torch.tensordot(a, a, 1, out=torch.empty(1)).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    with pytest.raises(RuntimeError, match="to have dtype"):
        torch.tensordot(a, a, 1, out=torch.empty(2, 2, dtype=torch.int64))


# Few rows and a transposed matrix; many columns, which threads share; a last panel not full.
SHAPES = [
    (2, 1000, 300),
    (3, 700, 40),
    (7, 700, 40),
    (151, 1030, 600),
    (301, 1025, 513),
    (145, 2050, 70),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("m,n,k", SHAPES)
def test_large_products_of_every_layout(m, n, k, dtype):
    kind = getattr(torch, dtype)
    a, b = (torch.from_numpy(draw(s, seed=k)).to(kind) for s in ((m, k), (k, n)))
    wanted = a.to(torch.float64).numpy() @ b.to(torch.float64).numpy()
    close = {"float32": 2e-6, "float64": 1e-14, "bfloat16": 5e-3}[dtype] * np.abs(wanted).max()
    for x in (a, a.t().contiguous().t(), torch.stack([a, a], -1)[..., 0]):
        for y in (b, b.t().contiguous().t(), torch.stack([b, b], -1)[..., 0]):
            off = np.abs((x @ y).to(torch.float64).numpy() - wanted).max()
            assert off <= close, (x.stride(), y.stride(), off, close)
