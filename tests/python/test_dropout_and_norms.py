"""Dropout of channels, fractional pooling and the statistics of normalisations: what samples cannot
say. The draws themselves are in test_random."""

import pytest

import tessera as torch
from tessera.nn import functional as F


def test_whole_channels_are_dropped():
    torch.manual_seed(0)
    for drop, shape in (
        (F.dropout1d, (8, 16, 3)),
        (F.dropout1d, (16, 3)),
        (F.dropout2d, (8, 16, 3, 2)),
        (F.dropout3d, (8, 16, 3, 2, 2)),
        (F.dropout3d, (16, 3, 2, 2)),
    ):
        y = drop(torch.ones(shape), 0.5)
        channels = y.flatten(-3 if drop is F.dropout3d else -2 if drop is F.dropout2d else -1)
        assert torch.equal(channels.amin(-1), channels.amax(-1))
        assert set(channels.flatten().tolist()) == {0.0, 2.0}


@pytest.mark.parametrize(
    "name", "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout".split()
)
def test_dropout_forms(name):
    drop = getattr(F, name)
    x = torch.randn(2, 3, 4, 4) if name != "dropout1d" else torch.randn(2, 3, 4)
    assert torch.equal(drop(x, 0.5, False), x)
    assert torch.equal(drop(x, 0.0, True), x)
    torch.manual_seed(3)
    y = drop(x, 0.4, True)
    torch.manual_seed(3)
    z = x.clone()
    assert torch.equal(drop(z, 0.4, True, True), y) and torch.equal(z, y)
    assert torch.equal(drop(x, 1.0, True), torch.zeros_like(x)) or "alpha" in name
    with pytest.raises(ValueError, match="between 0 and 1, but got 1.5"):
        drop(x, 1.5)


def test_dropout_in_place_returns_its_argument():
    x = torch.ones(3, 4)
    assert F.dropout1d(x, 0.5, inplace=True) is x
    assert set(x.flatten().tolist()) <= {0.0, 2.0}


def test_dropout_dimensions():
    with pytest.raises(RuntimeError, match="Expected 2D or 3D input, but received a 4D"):
        F.dropout1d(torch.ones(1, 2, 3, 4))
    with pytest.warns(UserWarning, match="assuming that channel-wise 1D dropout"):
        F.dropout2d(torch.ones(2, 3, 4))
    with pytest.warns(UserWarning, match="Received a 2-D input to dropout3d"):
        F.dropout3d(torch.ones(3, 4))
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        torch.feature_dropout(torch.ones(3), 0.5, True)


def test_fractional_pool_of_given_samples():
    x = torch.arange(36.0).reshape(1, 1, 6, 6).requires_grad_()
    samples = torch.tensor([[[0.75, 0.25]]])  # along the width, along the height
    y, at = F.fractional_max_pool2d(x, 2, 3, return_indices=True, _random_samples=samples)
    # Windows start at int((i + u) * 2) - int(u * 2), the last one at the end.
    assert at.flatten().tolist() == [7, 9, 11, 19, 21, 23, 31, 33, 35]
    assert torch.equal(y.flatten(), at.flatten().float())
    y.sum().backward()
    assert x.grad.sum() == 9 and (x.grad.flatten()[at.flatten()] == 1).all()
    both = F.fractional_max_pool2d_with_indices(x, 2, 3, _random_samples=samples)
    assert torch.equal(both[0], y) and torch.equal(both[1], at)


def test_fractional_pool_gradient():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 4, 6, dtype=torch.float64, requires_grad=True)
    samples = torch.rand(1, 2, 3, dtype=torch.float64)

    def pool(x):
        return F.fractional_max_pool3d(x, (2, 2, 3), (2, 3, 1), _random_samples=samples)

    assert torch.autograd.gradcheck(pool, (x,))
    assert torch.autograd.gradgradcheck(pool, (x,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_fractional_pool_of_half_floats(dtype):
    y = F.fractional_max_pool2d(torch.randn(2, 3, 9, 9, dtype=dtype), 3, 2)
    assert y.dtype == dtype and y.shape == (2, 3, 2, 2)


def test_fractional_pool_errors():
    x = torch.ones(1, 1, 4, 4)
    with pytest.raises(ValueError, match="either an output_size or an output_ratio"):
        F.fractional_max_pool2d(x, 2)
    with pytest.raises(RuntimeError, match="pool height 3 too large relative to input height 4"):
        F.fractional_max_pool2d(x, 3, 3)
    with pytest.raises(RuntimeError, match="Expected 3D or 4D tensor"):
        F.fractional_max_pool2d(torch.ones(4, 4), 2, 2, _random_samples=torch.ones(1, 1, 2))
    with pytest.raises(RuntimeError, match="same dtype"):
        F.fractional_max_pool2d(x, 2, 2, _random_samples=torch.zeros(1, 1, 2).double())
    with pytest.raises(RuntimeError, match="channel size"):
        F.fractional_max_pool2d(x, 2, 2, _random_samples=torch.zeros(1, 2, 2))


def test_only_the_first_result_of_layer_norm_has_a_gradient():
    x = torch.randn(3, 4, requires_grad=True)
    y, mean, factor = torch.native_layer_norm(x, [4], None, None, 1e-5)
    assert y.requires_grad and not mean.requires_grad and not factor.requires_grad
    assert mean.shape == (3, 1)
    torch.testing.assert_close(mean, x.detach().mean(1, keepdim=True))


def test_statistics_of_group_norm_have_gradients():
    torch.manual_seed(0)
    x = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4, dtype=torch.float64, requires_grad=True)

    def norm(x, w):
        return tuple(torch.native_group_norm(x, w, None, 2, 4, 3, 2, 1e-5))

    assert torch.autograd.gradcheck(norm, (x, w))
    assert torch.autograd.gradgradcheck(norm, (x, w))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_dtypes_of_statistics(dtype):
    x, w, wide = torch.randn(3, 4, dtype=dtype), torch.ones(4, dtype=dtype), torch.ones(4)
    for weight, expected in ((None, dtype), (w, dtype), (wide, torch.float32)):
        _, mean, factor = torch.native_layer_norm(x, [4], weight, None, 1e-5)
        assert mean.dtype == factor.dtype == expected
        _, mean, factor = torch.native_batch_norm(x, weight, None, None, None, True, 0.1, 1e-5)
        assert mean.dtype == factor.dtype == expected


def test_batch_norm_by_its_internal_names():
    x, mean, var = torch.randn(5, 3), torch.randn(3), torch.rand(3) + 0.5
    expected = F.batch_norm(x, mean, var)
    y, m, f = torch._C.ops["_native_batch_norm_legit_no_training"](
        x, None, None, mean, var, 0.1, 1e-5
    )
    assert torch.equal(y, expected) and m.shape == f.shape == (0,)
    legit = torch._native_batch_norm_legit(x, None, None, mean, var, False, 0.1, 1e-5)
    assert torch.equal(legit[0], expected)
    y, m, f = torch._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5)
    torch.testing.assert_close(m, x.mean(0))
    torch.testing.assert_close(y, F.batch_norm(x, None, None, training=True))


def test_batch_norm_without_elements():
    x = torch.empty(0, requires_grad=True)
    y = F.batch_norm(x, torch.empty(0), torch.empty(0))
    assert y.shape == (0,) and y.requires_grad
    assert F.batch_norm(torch.empty(0, 3), torch.zeros(3), torch.ones(3)).shape == (0, 3)


def test_rms_norm_of_complex_numbers():
    x = torch.tensor([[1 + 2j, 3 - 1j]], dtype=torch.complex128)
    expected = x / torch.sqrt((x * x).mean(-1, keepdim=True) + 0.5)
    torch.testing.assert_close(F.rms_norm(x, [2], eps=0.5), expected)


def test_renorm_scales_only_what_is_too_long():
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    y = torch.renorm(x, 2, 0, 1.0)
    torch.testing.assert_close(y, torch.tensor([[0.6, 0.8], [0.3, 0.4]]))
    assert torch.equal(x.clone().renorm_(2, 0, 1.0), y)
    assert torch.renorm(x.half(), 2, 0, 1.0).dtype == torch.float16
    z = torch.tensor([[3 + 4j, 0j], [0.3j, 0.4 + 0j]])
    torch.testing.assert_close(torch.renorm(z, 2, 0, 1.0)[0, 0], torch.tensor(0.6 + 0.8j))
    for p, dim, maxnorm, message in (
        (0, 0, 1.0, "non-positive-norm"),
        (1j, 0, 1.0, "p must be real-valued"),
        (2, 0, -1.0, "expected maxnorm to be >= 0"),
    ):
        with pytest.raises(RuntimeError, match=message):
            torch.renorm(x, p, dim, maxnorm)
    with pytest.raises(IndexError):
        torch.renorm(x, 2, 2, 1.0)
    with pytest.raises(RuntimeError, match="at least 2 dimensions, got 1"):
        torch.renorm(x[0], 2, 0, 1.0)


def test_local_response_norm():
    x = torch.randn(2, 5, 3, 2)
    squares = torch.cat([torch.zeros(2, 1, 3, 2), x * x, torch.zeros(2, 1, 3, 2)], 1)
    mean = (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]) / 3
    torch.testing.assert_close(F.local_response_norm(x, 3, 0.2), x / (1 + 0.2 * mean) ** 0.75)
    with pytest.raises(ValueError, match="Expected 3D or higher"):
        F.local_response_norm(torch.ones(2, 3), 2)


def test_two_numbers_are_no_arguments():
    for name in ("zeta", "xlog1py", "chebyshev_polynomial_t", "legendre_polynomial_p"):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            getattr(torch.special, name)(2, 3)
        assert getattr(torch.special, name)(2, torch.tensor([1.0])).shape == (1,)


def test_attention_of_half_floats_rounds_once():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 5, 8) * 4 for _ in range(3))
    low = [t.bfloat16() for t in (q, k, v)]
    exact = F.scaled_dot_product_attention(*[t.float() for t in low])
    y = F.scaled_dot_product_attention(*low)
    assert y.dtype == torch.bfloat16 and torch.equal(y, exact.bfloat16())


def test_softmax_of_one_number_sees_the_number():
    inf, nan = float("inf"), float("nan")
    for value in (inf, -inf, nan):
        assert torch.softmax(torch.tensor(value), 0).isnan()
        assert torch.log_softmax(torch.tensor(value), 0).isnan()
    assert torch.softmax(torch.tensor(3.0), 0) == 1 and torch.log_softmax(torch.tensor(3.0), 0) == 0


def test_out_must_have_the_dtype():
    x, at = torch.ones(2, 2), torch.zeros(2, 2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="dtype float, but got double"):
        torch.gather(x, 1, at, out=torch.ones(2, 2).double())
    with pytest.raises(RuntimeError, match="dtype float, but got double"):
        torch.aminmax(x, dim=0, out=(torch.ones(2), torch.ones(2).double()))
    with pytest.raises(RuntimeError, match="dtype long int, but got double"):
        torch.multinomial(x, 1, out=torch.ones(2, 1).double())
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.logcumsumexp(torch.empty(0, 2), 3)


def test_attention_of_rows_that_see_nothing():
    q, k, v = (torch.randn(1, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    y = F.scaled_dot_product_attention(q, k, v, mask)
    assert not y[0, 1].any()
    grads = torch.autograd.grad(y.sum(), (q, k, v))
    assert all(g.isfinite().all() for g in grads) and not grads[0][0, 1].any()
    assert torch.autograd.gradgradcheck(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask), (q, k, v)
    )
