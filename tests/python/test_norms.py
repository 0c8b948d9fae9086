"""Normalisations against NumPy in float64: all layouts that kernels tell apart, running numbers."""

import numpy as np
import pytest

import tessera as torch

F = torch.nn.functional
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def numbers(shape, seed=1, offset=0.0):
    return np.random.default_rng(seed).standard_normal(shape) + offset


def tensor(a, dtype, device, grad=False):
    t = torch.from_numpy(np.ascontiguousarray(a)).to(dtype).to(device)
    return t.requires_grad_() if grad else t


def array(t):
    return t.detach().double().cpu().numpy()


def close(t, expected, dtype):
    tol = TOLERANCE[dtype] * max(1.0, np.abs(expected).max(initial=0))
    assert t.shape == expected.shape
    assert np.abs(array(t) - expected).max(initial=0) <= tol


def rows_reference(x, w, b, eps, rows, channels, centred=True):
    """x as rows x channels x inner; weights as rows x channels x 1, or None."""
    v = x.reshape(rows, channels, -1)
    if centred:
        v = v - v.mean((1, 2), keepdims=True)
    y = v / np.sqrt((v * v).mean((1, 2), keepdims=True) + eps)
    if w is not None:
        y = y * w
    if b is not None:
        y = y + b
    return y.reshape(x.shape)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(3, 5), (1, 4097), (70, 64), (2, 3, 300), (1000, 33)])
def test_layer_norm(shape, dtype, device):
    a = array(tensor(numbers(shape, offset=2.0), dtype, device))
    w, b = (array(tensor(numbers(shape[-1:], s), dtype, device)) for s in (2, 3))
    rows = int(np.prod(shape[:-1]))
    expected = rows_reference(a, w[:, None], b[:, None], 1e-5, rows, shape[-1])
    x = tensor(a, dtype, device)
    close(
        F.layer_norm(x, shape[-1:], tensor(w, dtype, device), tensor(b, dtype, device)),
        expected,
        dtype,
    )
    turned = x.transpose(0, -1).contiguous().transpose(0, -1)
    close(
        F.layer_norm(turned, shape[-1:]),
        rows_reference(a, None, None, 1e-5, rows, shape[-1]),
        dtype,
    )
    expected = rows_reference(a, w[:, None], None, 1e-3, rows, shape[-1], centred=False)
    close(F.rms_norm(x, shape[-1:], tensor(w, dtype, device), 1e-3), expected, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm(groups, dtype, device):
    for shape in [(2, 6), (3, 6, 50), (2, 6, 9, 11), (1, 6, 70, 70)]:
        if np.prod(shape[1:]) == groups:
            continue
        a = array(tensor(numbers(shape), dtype, device))
        w, b = (array(tensor(numbers((6,), s), dtype, device)) for s in (2, 3))
        per_row = [np.tile(v.reshape(groups, -1), (shape[0], 1))[..., None] for v in (w, b)]
        expected = rows_reference(a, *per_row, 1e-5, shape[0] * groups, 6 // groups)
        x = tensor(a, dtype, device)
        y = F.group_norm(x, groups, tensor(w, dtype, device), tensor(b, dtype, device))
        close(y, expected, dtype)


def batch_reference(a, w, b, mean, var, eps):
    shape = [1, -1] + [1] * (a.ndim - 2)
    y = (a - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)
    return y * w.reshape(shape) + b.reshape(shape)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(40, 7), (5, 7, 33), (3, 7, 20, 30), (2, 7, 3, 4, 5)])
def test_batch_norm(shape, dtype, device):
    a = array(tensor(numbers(shape, offset=1.0), dtype, device))
    w, b = (array(tensor(numbers((7,), s), dtype, device)) for s in (2, 3))
    over = tuple(d for d in range(len(shape)) if d != 1)
    mean, var, n = a.mean(over), a.var(over), a.size // 7
    x, tw, tb = (tensor(v, dtype, device) for v in (a, w, b))
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    running = [tensor(np.zeros(7), wide, device), tensor(np.ones(7), wide, device)]
    versions = [t._version for t in running]
    y = F.batch_norm(x, *running, tw, tb, training=True, momentum=0.25)
    close(y, batch_reference(a, w, b, mean, var, 1e-5), dtype)
    close(running[0], 0.25 * mean, dtype)
    close(running[1], 0.75 + 0.25 * var * n / (n - 1), dtype)
    assert all(t._version > v for t, v in zip(running, versions))
    given = [array(t) for t in running]
    y = F.batch_norm(x, *running, tw, tb)
    close(y, batch_reference(a, w, b, *given, 1e-5), dtype)
    assert all(np.array_equal(array(t), g) for t, g in zip(running, given))


def test_instance_norm_moves_running_numbers(device):
    a = numbers((4, 3, 10), offset=1.0)
    x = tensor(a, torch.float64, device)
    mean, var = (tensor(v, torch.float64, device) for v in (np.zeros(3), np.ones(3)))
    y = F.instance_norm(x, mean, var, momentum=0.5)
    close(y, rows_reference(a, None, None, 1e-5, 12, 1), torch.float64)
    close(mean, 0.5 * a.mean(2).mean(0), torch.float64)
    close(var, 0.5 + 0.5 * a.var(2, ddof=1).mean(0), torch.float64)
    y = F.instance_norm(x, mean, var, use_input_stats=False)
    ones, zeros = np.ones(3), np.zeros(3)
    close(y, batch_reference(a, ones, zeros, array(mean), array(var), 1e-5), torch.float64)


def numeric_gradient(f, a, step=1e-6):
    g = np.zeros_like(a)
    flat, out = a.reshape(-1), g.reshape(-1)
    for i in range(flat.size):
        kept = flat[i]
        flat[i] = kept + step
        up = f()
        flat[i] = kept - step
        out[i] = (up - f()) / (2 * step)
        flat[i] = kept
    return g


CALLS = {
    "layer": lambda x, w, b: F.layer_norm(x, (6,), w, b),
    "rms": lambda x, w, b: F.rms_norm(x, (6,), w, 1e-3) + b,
    "group": lambda x, w, b: F.group_norm(x.transpose(0, 1), 2, w, b),
    "instance": lambda x, w, b: F.instance_norm(x.reshape(1, 6, 4), None, None, w, b),
    "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    "batch, running": lambda x, w, b: F.batch_norm(x, w.detach() * 0, w.detach() * 0 + 2, w, b),
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients(name, device):
    """First and second derivatives against differences."""
    call = CALLS[name]
    if name == "group":
        arrays = [numbers((6, 4), 1), numbers((6,), 2), numbers((6,), 3)]
    else:
        arrays = [numbers((4, 6), 1), numbers((6,), 2), numbers((6,), 3)]
    weights = None

    def first(gradients=False):
        nonlocal weights
        given = [tensor(a, torch.float64, device, grad=True) for a in arrays]
        y = call(*given)
        if weights is None:
            weights = tensor(numbers(tuple(y.shape), 9), torch.float64, device)
        loss = (y * y * weights).sum()
        if not gradients:
            return loss.item()
        return given, torch.autograd.grad(loss, given, create_graph=True)

    given, found = first(True)
    for g, a in zip(found, arrays):
        assert np.abs(array(g) - numeric_gradient(first, a)).max() < 1e-6
    mix = [tensor(numbers(a.shape, 20 + i), torch.float64, device) for i, a in enumerate(arrays)]

    def second(gradients=False):
        given, grads = first(True)
        total = sum((g * m).sum() for g, m in zip(grads, mix))
        return torch.autograd.grad(total, given) if gradients else total.item()

    for g, a in zip(second(True), arrays):
        assert np.abs(array(g) - numeric_gradient(second, a)).max() < 2e-5


def test_gradients_of_many_rows(device):
    """The sums over rows, in blocks; and a gradient that is expanded."""
    a, w = numbers((300, 40)), numbers((40,), 2)
    x, weight = (tensor(v, torch.float64, device, grad=True) for v in (a, w))
    bias = tensor(np.zeros(40), torch.float64, device, grad=True)
    F.layer_norm(x, (40,), weight, bias).sum().backward()
    xh = rows_reference(a, None, None, 1e-5, 300, 40)
    close(weight.grad, xh.sum(0), torch.float64)
    close(bias.grad, np.full(40, 300.0), torch.float64)


def test_errors(device):
    x = torch.ones(2, 3, device=device)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        F.batch_norm(x[:1], None, None, training=True)
    with pytest.raises(ValueError, match="more than 1 spatial element"):
        F.instance_norm(torch.ones(2, 3, 1, device=device))
    with pytest.raises(RuntimeError, match="expected input with shape"):
        F.layer_norm(x, (4,))
    with pytest.raises(RuntimeError, match="divisible by num_groups"):
        F.group_norm(x, 2)
    with pytest.raises(RuntimeError, match="running_mean should contain 3 elements not 2"):
        F.batch_norm(x, torch.ones(2, device=device), torch.ones(2, device=device))


def test_parameters_of_another_dtype_are_refused():
    x = torch.ones(2, 4, 3)
    for dtype in (torch.complex128, torch.float64, torch.int64):
        with pytest.raises(RuntimeError, match="mixed dtype"):
            torch.nn.functional.layer_norm(x, (3,), weight=torch.ones(3, dtype=dtype))
        with pytest.raises(RuntimeError, match="mixed dtype"):
            torch.nn.functional.group_norm(x, 2, bias=torch.ones(4, dtype=dtype))
    wide = torch.ones(4, dtype=torch.complex128)
    for refuse in (
        lambda: torch.nn.functional.batch_norm(x, None, None, wide, training=True),
        lambda: torch.nn.functional.instance_norm(x, weight=wide),
        lambda: torch.nn.functional.rms_norm(x, (3,), torch.ones(3, dtype=torch.complex128)),
    ):
        with pytest.raises(RuntimeError):
            refuse()
    half = torch.nn.functional.layer_norm(x.half(), (3,), weight=torch.ones(3))
    assert half.dtype == torch.float16
