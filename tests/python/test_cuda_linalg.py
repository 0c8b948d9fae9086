"""Factors, solutions and spectra on the device: each by what defines it, and against the CPU's."""

import pytest
from conftest import KIND

import tessera as torch

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]


def tolerance(dtype):
    return 2e-3 if dtype in (torch.float32, torch.complex64) else 1e-9


def close(got, expected):
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if expected.numel() == 0:
        return
    got, expected = got.cpu(), expected.cpu()
    size = max(1.0, expected.abs().max().item())
    assert (got - expected).abs().max().item() <= tolerance(expected.dtype) * size


def like(a, device):
    """The same values in the same strides on the device."""
    end = a.storage_offset() + sum((n - 1) * s for n, s in zip(a.shape, a.stride())) + 1
    flat = torch.as_strided(a, (end,), (1,), 0).to(device)
    return torch.as_strided(flat, a.shape, a.stride(), a.storage_offset())


def square(dtype):
    """Well-conditioned square matrices in several layouts and batches."""
    torch.manual_seed(3)

    def one(*shape):
        a = torch.randn(*shape, dtype=dtype)
        return a + 4 * torch.eye(shape[-1], dtype=dtype) * (1 + shape[-1]) ** 0.5

    yield one(1, 1)
    yield one(5, 5)
    yield one(33, 33).mT
    yield one(2, 3, 4, 4)
    yield one(6, 7, 7).mT
    yield one(1, 5, 5).expand(3, 5, 5)
    yield one(4, 10, 10)[:, ::2, 1::2]
    yield one(2, 40, 40)


def rectangles(dtype):
    torch.manual_seed(4)
    for shape in [(1, 1), (5, 3), (3, 5), (40, 7), (7, 40), (2, 3, 4), (3, 4, 3), (2, 2, 33, 5)]:
        yield torch.randn(*shape, dtype=dtype)
    yield torch.randn(3, 6, 4, dtype=dtype).mT
    yield torch.randn(4, 12, 10, dtype=dtype)[::2, ::2, 1::3]


def diagonal(values, rows, columns, dtype):
    out = torch.zeros(*values.shape[:-1], rows, columns, dtype=dtype, device=values.device)
    out.diagonal(dim1=-2, dim2=-1).copy_(values.to(dtype))
    return out


@pytest.mark.parametrize("dtype", DTYPES)
def test_lu(device, dtype):
    for a in [*square(dtype), *rectangles(dtype)]:
        b = like(a, device)
        p, low, up = torch.linalg.lu(b)
        close(p @ low @ up, b)
        got, expected = torch.linalg.lu_factor_ex(b), torch.linalg.lu_factor_ex(a)
        assert torch.equal(got[2].cpu(), expected[2])
        if not dtype.is_complex:  # what the largest of complex numbers is, libraries do not agree
            close(got[0], expected[0])
            assert torch.equal(got[1].cpu(), expected[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_lu_without_pivots(accelerator, dtype):
    if KIND != "cuda":
        pytest.skip("LAPACK always exchanges rows")
    for a in square(dtype):
        b = a.to(accelerator)
        p, low, up = torch.linalg.lu(b, pivot=False)
        assert p.shape == (0,)
        close(low @ up, b)
        lu, pivots = torch.linalg.lu_factor(b, pivot=False)
        assert (
            pivots[..., :].tolist()
            == torch.arange(1, a.shape[-1] + 1).expand(*a.shape[:-1]).tolist()
        )
        close(torch.linalg.lu_solve(lu, pivots, b @ b), b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_and_inverse(device, dtype):
    for a in square(dtype):
        b = like(a, device)
        close(b @ torch.linalg.inv(b), torch.eye(a.shape[-1], dtype=dtype).expand(a.shape))
        for got, expected in zip(torch.linalg.slogdet(b), torch.linalg.slogdet(a)):
            close(got, expected)
        n = a.shape[-1]
        for k in (1, 3):
            x = torch.randn(*a.shape[:-1], k, dtype=dtype)
            y = x.mT.contiguous().mT.to(device)
            close(torch.linalg.solve(b, y), torch.linalg.solve(a, x))
            close(torch.linalg.solve(b, y.mT, left=False), torch.linalg.solve(a, x.mT, left=False))
            lu, pivots = torch.linalg.lu_factor(b)
            for adjoint in (False, True):
                got = torch.linalg.lu_solve(lu, pivots, y, adjoint=adjoint)
                close((b.mH if adjoint else b) @ got, x)
            for upper in (False, True):
                for unit in (False, True):
                    t, u = (m.triu() if upper else m.tril() for m in (b, a))
                    how = {"upper": upper, "unitriangular": unit}
                    t, u = (m / n if unit else m for m in (t, u))
                    close(
                        torch.linalg.solve_triangular(t, y, **how),
                        torch.linalg.solve_triangular(u, x, **how),
                    )
                    close(
                        torch.linalg.solve_triangular(
                            t.mT.contiguous().mT, y.mT, left=False, **how
                        ),
                        torch.linalg.solve_triangular(u, x.mT, left=False, **how),
                    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky(device, dtype):
    for a in square(dtype):
        a = a @ a.mH
        b = a.to(device)
        x = torch.randn(*a.shape[:-1], 2, dtype=dtype)
        for upper in (False, True):
            low = torch.linalg.cholesky(b, upper=upper)
            close(low, torch.linalg.cholesky(a, upper=upper))
            assert (low.tril(-1) if upper else low.triu(1)).abs().max().item() == 0
            close(b @ torch.cholesky_solve(x.to(device), low, upper=upper), x)
            inverse = torch.cholesky_inverse(low, upper=upper)
            close(b @ inverse, torch.eye(a.shape[-1], dtype=dtype).expand(a.shape))
            close(inverse, inverse.mH.cpu())


@pytest.mark.parametrize("dtype", DTYPES)
def test_ldl(device, dtype):
    for whole in square(dtype):
        n = whole.shape[-1]
        for shift in (0, 4 * (1 + n) ** 0.5):  # without a large diagonal there are pairs of pivots
            for hermitian in (False, True):
                a = whole - shift * torch.eye(n, dtype=dtype)
                a = a + (a.mH if hermitian else a.mT)
                b = a.to(device)
                x = torch.randn(*a.shape[:-1], 2, dtype=dtype)
                ld, pivots, info = torch.linalg.ldl_factor_ex(b, hermitian=hermitian)
                for got, expected in zip(
                    (ld, pivots, info), torch.linalg.ldl_factor_ex(a, hermitian=hermitian)
                ):
                    close(got, expected)
                got = torch.linalg.ldl_solve(ld, pivots, x.to(device), hermitian=hermitian)
                close(b @ got, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_qr(device, dtype):
    for a in rectangles(dtype):
        b = like(a, device)
        for mode in ("reduced", "complete"):
            q, r = torch.linalg.qr(b, mode=mode)
            close(q @ r, b)
            close(q.mH @ q, torch.eye(q.shape[-1], dtype=dtype).expand(*q.shape[:-2], -1, -1))
            assert r.tril(-1).abs().sum().item() == 0
        close(torch.linalg.qr(b, mode="r")[1], torch.linalg.qr(a, mode="r")[1])
        h, tau = torch.geqrf(b)
        full = torch.linalg.qr(b, mode="complete")[0]
        c = torch.randn(*a.shape[:-2], a.shape[-2], 3, dtype=dtype).to(device)
        for transpose in (False, True):
            close(torch.ormqr(h, tau, c, True, transpose), (full.mH if transpose else full) @ c)
            right = c.mT.contiguous()
            close(
                torch.ormqr(h, tau, right, False, transpose),
                right @ (full.mH if transpose else full),
            )


@pytest.mark.parametrize("dtype", DTYPES)
def test_lstsq(device, dtype):
    for a in rectangles(dtype):
        b = like(a, device)
        x = torch.randn(*a.shape[:-1], 2, dtype=dtype)
        got = torch.linalg.lstsq(b, x.to(device), driver="gels")
        expected = torch.linalg.lstsq(a, x, driver="gels")
        close(got.solution, expected.solution)
        close(got.residuals, expected.residuals)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh(device, dtype):
    for a in square(dtype):
        a = (a + a.mH) / 2
        b = like(a, device)
        for uplo in "LU":
            values, v = torch.linalg.eigh(b, UPLO=uplo)
            close(values, torch.linalg.eigvalsh(a))
            close(v * values.unsqueeze(-2), b @ v)
            close(torch.linalg.eigvalsh(b, UPLO=uplo), torch.linalg.eigvalsh(a))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(device, dtype):
    for a in square(dtype):
        a = a - 4 * torch.eye(a.shape[-1], dtype=dtype) * (1 + a.shape[-1]) ** 0.5
        b = like(a, device)
        values, v = torch.linalg.eig(b)
        close(v * values.unsqueeze(-2), b.to(v.dtype) @ v)
        alone = torch.linalg.eigvals(b)
        close(alone.sum(-1), b.to(v.dtype).diagonal(dim1=-2, dim2=-1).sum(-1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_svd(device, dtype):
    for a in rectangles(dtype):
        b = like(a, device)
        values = torch.linalg.svdvals(a)
        close(torch.linalg.svdvals(b), values)
        for full in (False, True):
            u, s, vh = torch.linalg.svd(b, full_matrices=full)
            close(s, values)
            close(u @ diagonal(s, u.shape[-1], vh.shape[-2], dtype) @ vh, b)
            for q in (u, vh.mH):
                close(q.mH @ q, torch.eye(q.shape[-1], dtype=dtype).expand(*q.shape[:-2], -1, -1))
        close(torch.linalg.pinv(b), torch.linalg.pinv(a))


def test_wrong_matrices(device):
    singular = torch.zeros(2, 3, 3).to(device)
    for batch in (singular, singular[0]):
        with pytest.raises(torch.linalg.LinAlgError, match="singular"):
            torch.linalg.inv(batch)
        with pytest.raises(torch.linalg.LinAlgError, match="positive-definite"):
            torch.linalg.cholesky(batch)
        with pytest.raises(torch.linalg.LinAlgError):
            torch.cholesky_inverse(batch)
        with pytest.raises(torch.linalg.LinAlgError):
            torch.linalg.svd(batch + float("nan"))
    flat = torch.diag(torch.tensor([1.0, 1.0, 0.0])).to(device)
    with pytest.raises(torch.linalg.LinAlgError, match="full rank"):
        torch.linalg.lstsq(flat, flat, driver="gels")
    assert torch.linalg.inv_ex(singular)[1].tolist() == [1, 1]
    good = torch.eye(3).to(device)
    one_bad = torch.stack([good, -good])
    assert torch.linalg.cholesky_ex(one_bad)[1].tolist() == [0, 1]


def test_gradients(device):
    torch.manual_seed(5)
    x = torch.randn(4, 4, dtype=torch.float64)
    functions = [
        torch.linalg.det,
        torch.linalg.inv,
        lambda t: torch.linalg.cholesky(
            t @ t.mT + 4 * torch.eye(4, dtype=t.dtype, device=t.device)
        ),
        torch.linalg.svdvals,
        lambda t: torch.linalg.eigvalsh(t + t.mT),
        lambda t: torch.linalg.qr(t)[1].abs(),
        lambda t: torch.linalg.solve(t, t.sin()),
        torch.linalg.matrix_exp,
        torch.linalg.pinv,
        lambda t: torch.linalg.eigvals(t).abs(),
    ]
    for f in functions:
        grads = []
        for where in ("cpu", device):
            a = x.to(where).detach().requires_grad_()
            f(a).sin().sum().backward()
            grads.append(a.grad)
        close(grads[1], grads[0])
