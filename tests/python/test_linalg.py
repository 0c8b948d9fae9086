"""Factorisations, solutions and what follows from them: held to their definitions, their gradients
to differences."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tessera as torch
from tessera.autograd import gradcheck, gradgradcheck

L = torch.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(4, 4), (5, 3), (3, 5), (2, 3, 4, 4), (0, 3, 3), (1, 1)]


def draw(shape, dtype="float64", seed=0, device="cpu"):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return torch.from_numpy(x.astype(dtype)).to(device)


def definite(n, dtype="float64", batch=(), device="cpu"):
    x = draw((*batch, n, n), dtype, 1, device)
    return x @ x.mH + torch.eye(n, dtype=x.dtype, device=device)


def as_numpy(t):
    return t.detach().cpu().numpy()


def close(actual, expected):
    actual = as_numpy(actual)
    expected = as_numpy(expected) if isinstance(expected, torch.Tensor) else expected
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    tight = actual.dtype in (np.float64, np.complex128)
    np.testing.assert_allclose(
        actual, expected, rtol=1e-9 if tight else 2e-3, atol=1e-10 if tight else 2e-4
    )


def orthonormal(q):
    close(q.mH @ q, torch.eye(q.shape[-1], dtype=q.dtype).expand(*q.shape[:-2], -1, -1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr(shape, dtype, device):
    a = draw(shape, dtype, device=device)
    for mode in ("reduced", "complete"):
        q, r = L.qr(a, mode)
        orthonormal(q.cpu())
        close(q @ r, a)
        assert r.triu().equal(r)
    assert L.qr(a, "r").R.equal(L.qr(a).R) and L.qr(a, "r").Q.numel() == 0
    reflections, tau = torch.geqrf(a)
    if a.shape[-2] >= a.shape[-1]:
        close(L.householder_product(reflections, tau), L.qr(a).Q)
    c = draw((*shape[:-2], shape[-2], 2), dtype, 3, device)
    whole = L.qr(a, "complete").Q
    close(torch.ormqr(reflections, tau, c), whole @ c)
    close(torch.ormqr(reflections, tau, c, transpose=True), whole.mH @ c)
    close(torch.ormqr(reflections, tau, c.mH.clone(), left=False), c.mH @ whole)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_svd(shape, dtype, device):
    a = draw(shape, dtype, device=device)
    for full in (False, True):
        u, s, vh = L.svd(a, full_matrices=full)
        orthonormal(u.cpu())
        orthonormal(vh.mH.cpu())
        k = s.shape[-1]
        close((u[..., :k] * s.unsqueeze(-2).to(a.dtype)) @ vh[..., :k, :], a)
    close(L.svdvals(a), s)
    assert s.dtype == torch.zeros(1, dtype=a.dtype).real.dtype
    u, s, v = torch.svd(a)
    close((u * s.unsqueeze(-2).to(a.dtype)) @ v.mH, a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lu(shape, dtype, device):
    a = draw(shape, dtype, device=device)
    p, low, up = L.lu(a)
    close(p @ low @ up, a)
    factors, pivots = L.lu_factor(a)
    for x, y in zip((p, low, up), torch.lu_unpack(factors, pivots)):
        close(x, y)
    assert pivots.dtype == torch.int32
    if shape[-1] == shape[-2]:
        b = draw((*shape[:-1], 2), dtype, 2, device)
        close(a @ L.lu_solve(factors, pivots, b), b)
        close(a.mH @ L.lu_solve(factors, pivots, b, adjoint=True), b)
        close(L.lu_solve(factors, pivots, b.mT, left=False) @ a, b.mT)
    with pytest.raises(RuntimeError, match="without pivoting"):
        if device != "cpu":
            raise RuntimeError("without pivoting")
        L.lu_factor(a, pivot=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 0)], ids=str)
def test_definite(batch, dtype, device):
    a = definite(4, dtype, batch, device)
    low = L.cholesky(a)
    close(low @ low.mH, a)
    assert low.tril().equal(low)
    close(L.cholesky(a, upper=True), low.mH)
    assert L.cholesky_ex(a).info.tolist() == torch.zeros(batch, dtype=torch.int32).tolist()
    b = draw((*batch, 4, 2), dtype, 2, device)
    close(a @ torch.cholesky_solve(b, low), b)
    close(a @ torch.cholesky_solve(b, low.mH.clone(), upper=True), b)
    close(torch.cholesky_inverse(low), L.inv(a))
    values, vectors = L.eigh(a)
    close((vectors * values.unsqueeze(-2).to(a.dtype)) @ vectors.mH, a)
    close(L.eigvalsh(a), values)
    close(L.eigvalsh(a.tril(), UPLO="L"), values)
    close(L.eigvalsh(a.triu(), UPLO="U"), values)
    assert (values.diff() >= 0).all()
    for hermitian in (False, True):
        sym = a if hermitian else a + a.mT
        factors, pivots = L.ldl_factor(sym, hermitian=hermitian)
        close(sym @ L.ldl_solve(factors, pivots, b, hermitian=hermitian), b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,), (0,)], ids=str)
def test_square(batch, dtype, device):
    a = draw((*batch, 4, 4), dtype, device=device)
    close(a @ L.inv(a), torch.eye(4, dtype=a.dtype).expand(*batch, 4, 4))
    close(torch.inverse(a), L.inv(a))
    b = draw((*batch, 4, 2), dtype, 2, device)
    close(a @ L.solve(a, b), b)
    close(L.solve(a, b.mT, left=False) @ a, b.mT)
    close(a @ L.solve(a, b[..., 0]).unsqueeze(-1), b[..., :1])
    values, vectors = L.eig(a)
    close(a.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2))
    close(L.eigvals(a), values)
    expected = np.linalg.det(as_numpy(a))
    close(L.det(a), expected)
    sign, log = L.slogdet(a)
    close(sign * log.exp().to(a.dtype), expected)
    np.testing.assert_allclose(
        as_numpy(torch.logdet(a @ a.mH)).real, 2 * as_numpy(log), rtol=1e-2, atol=1e-3
    )
    for n in (-2, 0, 1, 5):
        close(L.matrix_power(a / 2, n), np.linalg.matrix_power(as_numpy(a / 2), n))


def test_triangular(device):
    a, b = draw((2, 4, 4), device=device), draw((2, 4, 3), seed=1, device=device)
    for upper in (False, True):
        for unit in (False, True):
            t = a.triu() if upper else a.tril()
            if unit:
                t = (
                    t
                    - t.diagonal(0, -2, -1).diag_embed()
                    + torch.eye(4, dtype=a.dtype, device=device)
                )
            options = {"upper": upper, "unitriangular": unit}
            close(t @ L.solve_triangular(a, b, **options), b)
            close(L.solve_triangular(a, b.mT, left=False, **options) @ t, b.mT)
            close(
                L.solve_triangular(a.mT.contiguous().mT, b, **options),
                L.solve_triangular(a, b, **options),
            )
            x, clone = torch.triangular_solve(b, a, transpose=True, **options)
            close(t.mT @ x, b)
            assert clone.equal(a)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares(dtype, driver):
    for shape in ((5, 3), (3, 5), (4, 4), (2, 6, 2)):
        a, b = draw(shape, dtype), draw((*shape[:-1], 2), dtype, 1)
        found = L.lstsq(a, b, driver=driver)
        close(found.solution, np.linalg.pinv(as_numpy(a)) @ as_numpy(b))
        rest = ((a @ found.solution - b).abs() ** 2).sum(-2)
        if shape[-2] > shape[-1] and driver != "gelsy":
            close(found.residuals, rest)
        else:
            assert found.residuals.shape == (0,)
        if driver in ("gelsd", "gelss"):
            close(found.singular_values, L.svdvals(a))
        if driver != "gels":
            assert (found.rank == min(shape[-2:])).all()
    deficient = torch.ones(4, 2, dtype=getattr(torch, dtype))
    if driver != "gels":
        assert L.lstsq(deficient, deficient, driver=driver).rank == 1


def test_small_singular_values():
    a = draw((4, 2)) @ draw((2, 4), seed=1)
    assert L.matrix_rank(a) == 2 and L.matrix_rank(a, atol=1e6) == 0
    assert L.matrix_rank(torch.stack([a, torch.zeros_like(a)])).tolist() == [2, 0]
    assert L.matrix_rank(a @ a.mT, hermitian=True) == 2
    assert L.matrix_rank(a, 1e6) == 0
    close(L.pinv(a), np.linalg.pinv(as_numpy(a), rcond=1e-10))
    close(L.pinv(a @ a.mT, hermitian=True), np.linalg.pinv(as_numpy(a @ a.mT), rcond=1e-10))
    close(torch.pinverse(a, 1e-10), np.linalg.pinv(as_numpy(a), rcond=1e-10))
    diagonal = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    for p in (None, 2, "fro", "nuc", 1, float("inf"), -1, -2):
        np.testing.assert_allclose(
            L.cond(diagonal, p).item(), np.linalg.cond(as_numpy(diagonal), p), rtol=1e-5
        )
    assert L.cond(torch.ones(2, 2), 1) == float("inf")


@pytest.mark.parametrize("dtype", DTYPES)
def test_norms(dtype):
    a = draw((3, 4), dtype)
    host = as_numpy(a)
    for p in (0, 1, 2, 3, 0.5, -1, float("inf"), float("-inf")):
        expected = np.linalg.norm(host.ravel(), p)
        np.testing.assert_allclose(L.vector_norm(a, p).item(), expected, rtol=1e-4)
        np.testing.assert_allclose(torch.norm(a, p).item(), expected, rtol=1e-4)
        np.testing.assert_allclose(as_numpy(L.norm(a, p, 1)), np.linalg.norm(host, p, 1), rtol=1e-4)
    for p in ("fro", "nuc", 1, 2, -1, -2, float("inf"), float("-inf")):
        expected = np.linalg.norm(host, p)
        np.testing.assert_allclose(L.matrix_norm(a, p).item(), expected, rtol=1e-4)
        np.testing.assert_allclose(L.norm(a, p).item(), expected, rtol=1e-4)
        three = a.unsqueeze(1)
        assert L.matrix_norm(three, p, (0, 2), keepdim=True).shape == (1, 1, 1)
    assert torch.norm(a).item() == pytest.approx(np.linalg.norm(host), rel=1e-5)
    assert torch.norm(a, "nuc").item() == pytest.approx(np.linalg.norm(host, "nuc"), rel=1e-4)


def test_exponential():
    a = draw((3, 3))
    t = torch.stack([a * 1e-3, a, a * 10])
    values, vectors = L.eig(t)
    expected = vectors @ (values.exp().unsqueeze(-1) * L.inv(vectors))
    np.testing.assert_allclose(as_numpy(torch.matrix_exp(t)), as_numpy(expected.real), rtol=1e-8)
    nilpotent = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    assert torch.matrix_exp(nilpotent).tolist() == [[1.0, 1.0], [0.0, 1.0]]
    assert torch.matrix_exp(nilpotent.half()).dtype == torch.float16


def test_tensors_as_matrices():
    a = draw((2, 3, 6))
    b = draw((2, 3), seed=1)
    x = L.tensorsolve(a, b)
    close(torch.tensordot(a, x, 1), b)
    close(torch.tensordot(L.tensorinv(a, ind=2), b, 2), x)
    assert L.vander(torch.tensor([2, 3]), N=4).tolist() == [[1, 2, 4, 8], [1, 3, 9, 27]]
    assert L.diagonal(torch.eye(3)).tolist() == [1, 1, 1]


def test_few_values():
    torch.manual_seed(0)
    low = draw((20, 3)) @ draw((3, 15), seed=1)
    for a in (low, low.mT):
        u, s, v = torch.svd_lowrank(a, q=3)
        close((u * s) @ v.mT, a)
    u, s, v = torch.pca_lowrank(low, q=3)
    close((u * s) @ v.mT, low - low.mean(-2, keepdim=True))
    a = definite(6)
    values, vectors = torch.lobpcg(a, k=2)
    close(values, L.eigvalsh(a).flip(0)[:2])
    close(a @ vectors, vectors * values)
    b = definite(6) + 1
    values, vectors = torch.lobpcg(a, 2, b, largest=False)
    close(a @ vectors, b @ vectors * values)


SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda t: L.inv(t), "linalg.inv: The diagonal element 2 is zero"),
        (lambda t: L.inv(torch.stack([torch.eye(2), t])), r"\(Batch element 1\)"),
        (lambda t: L.solve(t, t), "torch.linalg.solve: The solver failed.*singular"),
        (lambda t: L.lu_factor(t), r"U\[2,2\] is zero"),
        (lambda t: L.cholesky(-t), "linalg.cholesky: .*leading minor of order 1 is not"),
        (lambda t: torch.cholesky(-t), "cholesky: "),
        (lambda t: L.svd(t * float("nan")), "linalg.svd: .*non-finite"),
        (lambda t: L.tensorinv(t, 1), "singular"),
    ],
)
def test_what_has_no_answer(call, message):
    with pytest.raises(torch.linalg.LinAlgError, match=message):
        call(torch.tensor(SINGULAR))
    assert issubclass(torch.linalg.LinAlgError, RuntimeError)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: L.inv(torch.ones(2, 3)), "linalg.inv: A must be batches of square matrices"),
        (lambda: L.det(torch.ones(3)), "linalg.det: The input tensor A must have at least 2"),
        (lambda: L.svd(torch.ones(2, 2).half()), "Low precision dtypes not supported. Got Half"),
        (lambda: L.qr(torch.ones(2, 2).long()), "Expected a floating point or complex tensor"),
        (lambda: L.qr(torch.ones(2, 2), "some"), "unrecognized mode 'some'"),
        (lambda: L.eigh(torch.ones(2, 2), "X"), "UPLO"),
        (lambda: L.solve(torch.eye(2), torch.ones(3, 1)), "Incompatible shapes of A and B"),
        (lambda: L.solve(torch.eye(2), torch.ones(2, 1).double()), "same dtype"),
        (lambda: L.eig(torch.tensor([[float("inf"), 0], [0, 1]])), "infs or NaNs"),
        (lambda: L.matrix_norm(torch.ones(2, 2), 3), "Order 3"),
        (lambda: L.vector_norm(torch.ones(2).long()), "floating point or complex"),
        (lambda: L.lstsq(torch.ones(2, 2), torch.ones(2, 2), driver="x"), "driver"),
        (lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 3)), r"\(2x3 and 2x3\)"),
        (lambda: torch.ones(2, 2, 3) @ torch.ones(4, 2), r"\(4x3 and 4x2\)"),
        (lambda: torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 5)), "2x3 and 5x4"),
    ],
)
def test_refused(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_phase_dependent_loss_is_refused():
    a = draw((3, 3), "complex128").requires_grad_()
    with pytest.raises(RuntimeError, match="ill-defined"):
        L.svd(a).U.imag.sum().backward()
    with pytest.raises(RuntimeError, match="ill-defined"):
        L.eigh(a + a.mH).eigenvectors.imag.sum().backward()


# Functions of a matrix whose results do not depend on signs or phases of vectors.
def _eigh(a):
    values, v = L.eigh(a + a.mH)
    return values, (v * torch.tensor([1.0, 2.0, 5.0], dtype=v.dtype)) @ v.mH


def _eig(a):
    values, v = L.eig(a)
    weights = torch.tensor([1.0, 2.0, 5.0], dtype=v.dtype)
    # In an order that does not jump.
    order = np.argsort(as_numpy(values).real).tolist()
    return values[order].abs(), (v[:, order] * weights) @ L.inv(v[:, order])


def _svd(full):
    def run(a):
        u, s, vh = L.svd(a, full_matrices=full)
        k = s.shape[-1]
        weights = torch.tensor([1.0, 2.0, 5.0, 7.0], dtype=u.dtype)[:k]
        return s, (u[..., :k] * weights) @ vh[..., :k, :]

    return run


def _householder(a, tau):
    return L.householder_product(a, tau)


GRADIENTS = {
    "inv": (L.inv, [(3, 3)]),
    "det": (L.det, [(2, 3, 3)]),
    "slogdet": (lambda a: L.slogdet(a)[1], [(3, 3)]),
    "logdet": (lambda a: torch.logdet(a @ a.mH).real, [(3, 3)]),
    "solve": (L.solve, [(3, 3), (3, 2)]),
    "solve_right": (lambda a, b: L.solve(a, b, left=False), [(3, 3), (2, 3)]),
    "solve_broadcast": (L.solve, [(2, 3, 3), (3, 2)]),
    "cholesky": (lambda a: L.cholesky(a @ a.mH + torch.eye(3, dtype=a.dtype)), [(3, 3)]),
    "cholesky_upper": (
        lambda a: L.cholesky(a @ a.mH + torch.eye(3, dtype=a.dtype), upper=True),
        [(3, 3)],
    ),
    "triangular": (lambda a, b: L.solve_triangular(a, b, upper=True), [(3, 3), (3, 2)]),
    "triangular_unit": (
        lambda a, b: L.solve_triangular(a, b, upper=False, left=False, unitriangular=True),
        [(3, 3), (2, 3)],
    ),
    "lu": (lambda a: L.lu(a)[1:], [(3, 3)]),
    "lu_wide": (lambda a: L.lu(a)[1:], [(2, 4)]),
    "lu_tall": (lambda a: L.lu(a)[1:], [(4, 2)]),
    "lu_factor": (lambda a: L.lu_factor(a)[0], [(3, 3)]),
    "lu_solve": (
        lambda a, b: [L.lu_solve(*L.lu_factor(a), b, adjoint=x) for x in (False, True)],
        [(3, 3), (3, 2)],
    ),
    "qr": (L.qr, [(3, 3)]),
    "qr_tall": (L.qr, [(4, 2)]),
    "qr_wide": (L.qr, [(2, 4)]),
    "householder": (_householder, [(4, 3), (3,)]),
    "ormqr": (lambda a, t, c: torch.ormqr(a, t, c), [(4, 3), (3,), (4, 2)]),
    "ormqr_adjoint": (lambda a, t, c: torch.ormqr(a, t, c, True, True), [(4, 3), (3,), (4, 2)]),
    "ormqr_right": (lambda a, t, c: torch.ormqr(a, t, c, False), [(4, 3), (3,), (2, 4)]),
    "ormqr_right_adjoint": (
        lambda a, t, c: torch.ormqr(a, t, c, False, True),
        [(4, 3), (3,), (2, 4)],
    ),
    "eigh": (_eigh, [(3, 3)]),
    "eigvalsh": (lambda a: L.eigvalsh(a + a.mH), [(3, 3)]),
    "eig": (_eig, [(3, 3)]),
    "svd": (_svd(False), [(3, 3)]),
    "svd_tall": (_svd(True), [(4, 2)]),
    "svd_wide": (_svd(False), [(2, 4)]),
    "svdvals": (L.svdvals, [(3, 2)]),
    "pinv": (L.pinv, [(3, 2)]),
    "pinv_wide": (L.pinv, [(2, 3)]),
    "lstsq": (lambda a, b: L.lstsq(a, b, driver="gelsd")[:2], [(4, 2), (4, 2)]),
    "lstsq_wide": (lambda a, b: L.lstsq(a, b).solution, [(2, 4), (2, 2)]),
    "matrix_exp": (torch.matrix_exp, [(2, 3, 3)]),
    "matrix_power": (lambda a: L.matrix_power(a, -3), [(3, 3)]),
    "vector_norm": (lambda a: [L.vector_norm(a, p, 0) for p in (1.5, 2, 3, 0.5)], [(3, 2)]),
    "nuclear": (lambda a: L.matrix_norm(a, "nuc"), [(3, 2)]),
    "two": (lambda a: L.matrix_norm(a, 2), [(3, 2)]),
    "cond": (lambda a: [L.cond(a), L.cond(a, 1)], [(3, 3)]),
    "tensorsolve": (L.tensorsolve, [(2, 3, 6), (2, 3)]),
    "vander": (L.vander, [(3,)]),
    "multi_dot": (lambda *m: L.multi_dot(m), [(2, 3), (3, 4), (4, 2)]),
    "vecdot": (L.vecdot, [(2, 3), (2, 3)]),
    "einsum": (
        lambda a, b, c: torch.einsum("bij,bjk,...k->...ib", a, b, c),
        [(2, 3, 2), (2, 2, 3), (4, 3)],
    ),
    "addmm": (lambda s, a, b: torch.addmm(s, a, b, beta=2, alpha=3), [(3,), (2, 2), (2, 3)]),
    "addbmm": (torch.addbmm, [(2, 3), (4, 2, 2), (4, 2, 3)]),
    "baddbmm": (torch.baddbmm, [(1, 2, 3), (4, 2, 2), (4, 2, 3)]),
    "addmv": (torch.addmv, [(2,), (2, 3), (3,)]),
    "addr": (torch.addr, [(2, 3), (2,), (3,)]),
    "linear": (torch.nn.functional.linear, [(2, 2, 3), (4, 3), (4,)]),
    "bilinear": (torch.nn.functional.bilinear, [(2, 3), (2, 2), (4, 3, 2), (4,)]),
    "vdot": (torch.vdot, [(3,), (3,)]),
    "tensordot": (lambda a, b: torch.tensordot(a, b, ([0, 1], [1, 0])), [(2, 3, 2), (3, 2, 4)]),
}
ONLY_REAL = {"eig"}  # its branches cross under complex differences
ONCE = {"cond", "two"}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, dtype):
    if name in ONLY_REAL and dtype == "complex128":
        pytest.skip("checked for real matrices")
    function, shapes = GRADIENTS[name]
    inputs = [draw(s, dtype, 10 + i).requires_grad_() for i, s in enumerate(shapes)]
    assert gradcheck(function, inputs, atol=1e-5, rtol=1e-4)
    if name not in ONCE:
        assert gradgradcheck(function, inputs, atol=1e-4, rtol=1e-3)


def test_gradient_of_a_singular_determinant():
    for rank in (0, 1, 2):
        host = np.zeros((3, 3))
        host[np.arange(rank), np.arange(rank)] = [2.0, 3.0][:rank]
        a = torch.tensor(host, requires_grad=True)
        L.det(a).backward()
        expected = np.zeros((3, 3))
        if rank == 2:
            expected[2, 2] = 6.0
        close(a.grad, expected)


def test_without_lapack():
    program = (
        "import tessera as torch\n"
        "try: torch.linalg.inv(torch.eye(2))\n"
        "except NotImplementedError as e: print(e)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TESSERA_LAPACK": "none"},
        capture_output=True,
        text=True,
    )
    assert "libopenblas0" in found.stdout, found
