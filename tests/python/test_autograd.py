"""Gradients, views written in place, modes."""

import gc

import pytest

import tessera as torch


@pytest.fixture
def x(device):
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device, requires_grad=True)


def test_leaf_and_result(x):
    y = x * 2
    assert x.is_leaf and not y.is_leaf and y.requires_grad
    assert y.grad_fn.name() == "MulBackward0" and x.grad_fn is None
    assert y.grad_fn == y.grad_fn
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    (x * x).sum().backward()
    assert x.grad.tolist() == [[4.0, 6.0], [8.0, 10.0]]


def test_gradient_argument_and_errors(x):
    y = x * 3
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        y.backward()
    y.backward(torch.ones(2, 2, device=x.device))
    assert x.grad.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(1, device=x.device).sum().backward()


def test_second_backward_needs_the_graph(x):
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [[4.0, 8.0], [12.0, 16.0]]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_grad_function(x):
    y = (x * x * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.tolist() == [[3.0, 12.0], [27.0, 48.0]] and x.grad is None
    (gg,) = torch.autograd.grad(g.sum(), [x])
    assert gg.tolist() == [[6.0, 12.0], [18.0, 24.0]]
    other = torch.ones(1, device=x.device, requires_grad=True)
    with pytest.raises(RuntimeError, match="allow_unused"):
        torch.autograd.grad((x * 2).sum(), other)
    assert torch.autograd.grad((x * 2).sum(), other, allow_unused=True) == (None,)


def test_backward_into_some_inputs(x):
    w = torch.ones(2, device=x.device, requires_grad=True)
    (x * w).sum().backward(inputs=[w])
    assert x.grad is None and w.grad.tolist() == [4.0, 6.0]
    torch.autograd.backward([(x * w).sum()], inputs=w)
    assert w.grad.tolist() == [8.0, 12.0]


def test_broadcast_gradients(device):
    a = torch.ones(3, 1, device=device, requires_grad=True)
    b = torch.ones(4, device=device, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.tolist() == [[4.0]] * 3 and b.grad.tolist() == [3.0] * 4


def test_setting_flags_and_gradients(x):
    x.grad = torch.ones(2, 2, device=x.device)
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    x.grad = None
    for bad in (torch.ones(3, device=x.device), torch.ones(2, 2, dtype=torch.float64)):
        with pytest.raises(RuntimeError, match="assigned grad"):
            x.grad = bad
    with pytest.raises(TypeError):
        x.grad = 1
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).requires_grad = False
    with pytest.raises(RuntimeError):
        torch.ones(2, dtype=torch.int64).requires_grad_()
    assert x.detach().requires_grad is False and x.detach()._is_same_storage(x)
    y = x * 2
    y.detach_()
    assert y.is_leaf and not y.requires_grad


def test_modes(x):
    with torch.no_grad():
        assert not torch.is_grad_enabled() and not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    assert torch.is_grad_enabled()

    @torch.no_grad()
    def plain():
        return x * 2

    @torch.no_grad
    def bare():
        return x * 2

    @torch.no_grad()
    def steps():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    assert not plain().requires_grad and not bare().requires_grad
    assert plain.__name__ == "plain"
    for inside in steps():
        assert not inside and torch.is_grad_enabled()
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    with torch.inference_mode():
        assert not (x * 2).requires_grad
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        1 / 0
    assert torch.is_grad_enabled()


def test_inplace_on_a_leaf_is_refused(x):
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="view of a leaf Variable"):
        x[0].add_(1)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x[0] = 1
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x.copy_(torch.zeros(2, 2, device=x.device))
    with torch.no_grad():
        x.add_(1)
        x[0] = 0
    assert x.tolist() == [[0.0, 0.0], [4.0, 5.0]] and x.is_leaf


def test_inplace_on_a_result(x):
    y = x * 2
    y.add_(1)
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]


def test_writes_through_views(x):
    y = x * 1
    y[0].mul_(5)
    y[:, 1].add_(x[:, 0])
    (y * y).sum().backward()

    def f(a):
        rows = [[5 * a[0][0], 5 * a[0][1] + a[0][0]], [a[1][0], a[1][1] + a[1][0]]]
        return sum(v * v for r in rows for v in r)

    base, step = x.tolist(), 1e-4
    for i in range(2):
        for j in range(2):
            up = [row[:] for row in base]
            up[i][j] += step
            slope = (f(up) - f(base)) / step
            assert x.grad[i, j].item() == pytest.approx(slope, rel=1e-2)


def test_assignment_into_a_result(x):
    y = x * 2
    y[0] = 7
    y[1] = x[0] * 10
    y.sum().backward()
    assert x.grad.tolist() == [[10.0, 10.0], [0.0, 0.0]]


def test_assignment_into_zeros(x):
    y = torch.zeros(2, 2, device=x.device)
    y[0] = x[1] * 3
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [3.0, 3.0]]


def test_view_sees_the_write_of_its_base(x):
    y = x * 1
    row = y[0]
    y.mul_(4)
    row.sum().backward()
    assert x.grad.tolist() == [[4.0, 4.0], [0.0, 0.0]]


def test_saved_values_are_guarded(x):
    y = x * 1
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_out_and_autograd(x):
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        torch.add(x, x, out=torch.empty(2, 2, device=x.device))


def test_long_chain_is_freed_without_recursion(x):
    y = x
    for _ in range(20000):
        y = y + 0
    y.sum().backward()
    del y
    gc.collect()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_autocast(device):
    a = torch.ones(4, 4, device=device, requires_grad=True)
    with torch.autocast(device, dtype=torch.bfloat16):
        out = a @ a
        assert out.dtype is torch.bfloat16
        with torch.autocast(device, enabled=False):
            assert (a @ a).dtype is torch.float32
    assert (a @ a).dtype is torch.float32
    out.sum().backward()
    assert a.grad.dtype is torch.float32

    @torch.autocast(device, dtype=torch.bfloat16)
    def forward():
        return a @ a

    assert forward().dtype is torch.bfloat16
    with pytest.raises(RuntimeError):
        torch.autocast("nothing")


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float64])
def test_writes_into_what_has_no_gradient(dtype):
    x = torch.tensor(1.25, requires_grad=True)
    copied, item = torch.zeros(2, dtype=dtype), torch.zeros(2, dtype=dtype)
    copied.copy_(x)
    item[0] = x
    assert copied.requires_grad == item.requires_grad == dtype.is_floating_point
    assert copied.tolist() == [x.item() if dtype.is_floating_point else 1] * 2


def test_nodes_that_save_nothing_can_be_gone_through_again():
    x = torch.ones(3, requires_grad=True)
    y = (x + 2 - x.view(3, 1)).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    for needs in (x * 2, x / 2, x.exp(), x.relu()):
        z = needs.sum()
        z.backward()
        with pytest.raises(RuntimeError, match="second time"):
            z.backward()


def test_a_complex_result_needs_a_gradient_given():
    z = torch.ones(3, dtype=torch.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got torch.complex64"):
        z.sum().backward()
    z.sum().backward(torch.tensor(1 + 0j))
    assert z.grad.tolist() == [1, 1, 1]


def test_writes_through_data_are_counted_apart():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    data = y.data
    data.mul_(3)
    data[1:].add_(1)
    assert (y._version, data._version, y.data._version) == (0, 2, 0)
    z.backward()  # with the numbers that are there now, as PyTorch
    assert x.grad.tolist() == [24.0, 28.0, 28.0]
    y.detach().mul_(2)
    assert (y._version, data._version) == (1, 2)


def test_writes_through_data_are_seen_by_what_it_takes_part_in():
    w = torch.ones(3).data.requires_grad_()
    loss = (w * w).sum()
    w.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_weights_written_through_data_are_lowered_again():
    layer = torch.nn.Linear(2, 2, bias=False)
    x = torch.ones(1, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        layer(x)
        layer.weight.data.fill_(3.0)
        assert layer(x).tolist() == [[6.0, 6.0]]


@pytest.mark.parametrize("compare", ["eq_", "ne_", "lt_", "le_", "gt_", "ge_", "logical_and_"])
def test_what_was_compared_in_place_has_no_slope(compare):
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = x * 3
    getattr(y, compare)(torch.tensor([3.0, 1.0]))
    assert y.requires_grad
    (y + x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_what_was_compared_in_place_through_a_view_has_no_slope_there():
    x = torch.ones(3, requires_grad=True)
    y = x * 3
    y[1:].gt_(0)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 0.0, 0.0]


def test_a_shape_that_was_changed_unseen_is_an_error():
    x = torch.arange(35.0).view(5, 1, 7).requires_grad_()
    windows = x.unfold(-1, 1, 2)
    with torch.no_grad():
        windows.squeeze_()
    with pytest.raises(
        RuntimeError, match=r"invalid gradient at index 0 - got \[5, 4\] but .* \[5, 1, 4, 1\]"
    ):
        windows.sum().backward()
    y = x * x
    y.data = torch.zeros(1000)
    with pytest.raises(RuntimeError, match=r"invalid gradient at index 0 - got \[1000\]"):
        y.sum().backward()
    y = x * 2
    y[0].mul_(3)
    with torch.no_grad():
        torch.add(torch.ones(7), 1, out=y)
    with pytest.raises(RuntimeError, match=r"invalid gradient .* got \[7\] but .* \[5, 1, 7\]"):
        y.sum().backward()


def test_views_of_what_was_resized_are_an_error():
    x = torch.ones(4, 5, requires_grad=True)
    y = x * 2
    pieces = y.split(1)
    with torch.no_grad():
        torch.add(torch.ones(2, 4, 5), 1, out=y)  # two pieces now: there is no fourth
    for _ in range(2):  # and is one when it is tried again
        with pytest.raises(RuntimeError, match="its base had been transposed or resized in place"):
            pieces[3].neg()
    y = x * 2
    row = y[1]
    with torch.no_grad():
        torch.add(torch.ones(2), 1, out=row)
    y.mul_(2)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"view of shape \[5\] .* resized in place to \[2\]"):
            row.neg()


def test_a_base_that_was_transposed_and_back():
    x = torch.ones(4, 5, requires_grad=True)
    y = x * 2
    row = y[1]
    y.t_()
    with pytest.raises(RuntimeError, match="its base had been transposed"):
        row.neg()
    y.t_().mul_(2)
    row.sum().backward()
    assert x.grad.tolist() == [[0.0] * 5, [4.0] * 5, [0.0] * 5, [0.0] * 5]
