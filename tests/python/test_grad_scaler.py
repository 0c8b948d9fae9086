"""GradScaler: the scale, the steps it skips, and mixed precision with it."""

import pickle

import pytest

import tessera as torch
from tessera import nn


def scaler_of(device, **options):
    return torch.amp.GradScaler(device, **options)


def one_parameter(device, value=1.0):
    w = nn.Parameter(torch.full((2,), value, device=device))
    return w, torch.optim.SGD([w], lr=0.5)


def backward(scaler, w, factor=1.0):
    w.grad = None
    scaler.scale((w * factor).sum()).backward()


def test_steps_are_those_without_a_scaler(device):
    scaler = scaler_of(device)
    w, optimizer = one_parameter(device)
    assert scaler.get_scale() == 65536
    backward(scaler, w, 3.0)
    assert w.grad.tolist() == [3 * 65536] * 2
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [-0.5, -0.5] and w.grad.tolist() == [3, 3]


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_gradients_that_are_not_finite(bad, device):
    scaler = scaler_of(device, init_scale=8.0, growth_interval=2)
    w, optimizer = one_parameter(device)
    backward(scaler, w, bad)
    assert scaler.step(optimizer) is False
    scaler.update()
    assert w.tolist() == [1, 1] and scaler.get_scale() == 4
    for scale in (4, 8, 8, 16):  # after two good steps in a row it grows
        backward(scaler, w)
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == scale
    backward(scaler, w)
    scaler.step(optimizer)
    scaler.update()
    backward(scaler, w, bad)  # starts the count again
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 8 and scaler._get_growth_tracker() == 0


def test_the_scale_stays_finite(device):
    scaler = scaler_of(device, init_scale=2.0**127, growth_interval=1)
    w, optimizer = one_parameter(device, 0.0)
    backward(scaler, w, 2.0**-100)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_unscale_before_clipping(device):
    scaler = scaler_of(device)
    w, optimizer = one_parameter(device)
    backward(scaler, w, 3.0)
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_([w], 1.0)
    assert norm.item() == pytest.approx(18**0.5)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="step\\(\\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="called after step"):
        scaler.unscale_(optimizer)
    scaler.update()
    assert w.tolist() == pytest.approx([1 - 0.5 / 2**0.5] * 2, rel=1e-5)


def test_two_optimizers_and_several_losses(device):
    scaler = scaler_of(device, init_scale=4.0)
    (a, first), (b, second) = one_parameter(device), one_parameter(device)
    losses = scaler.scale([a.sum(), b.sum() * float("inf")])
    assert isinstance(losses, list)
    sum(losses).backward()
    scaler.step(first)
    scaler.step(second)
    scaler.update()
    assert a.tolist() == [0.5, 0.5] and b.tolist() == [1, 1] and scaler.get_scale() == 2


def test_state(device):
    scaler = scaler_of(device, init_scale=4.0, growth_interval=5)
    w, optimizer = one_parameter(device)
    backward(scaler, w)
    scaler.step(optimizer)
    with pytest.raises(AssertionError, match="pickled"):
        pickle.dumps(scaler)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 4.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 5,
        "_growth_tracker": 1,
    }
    other = scaler_of(device)
    other.load_state_dict(state)
    again = pickle.loads(pickle.dumps(scaler))
    assert other.state_dict() == again.state_dict() == state
    backward(again, w)
    again.step(optimizer)
    again.update(32.0)
    assert again.get_scale() == 32


def test_disabled_and_wrong_use(device):
    off = scaler_of(device, enabled=False)
    w, optimizer = one_parameter(device)
    loss = w.sum()
    assert off.scale(loss) is loss and off.get_scale() == 1.0 and off.state_dict() == {}
    loss.backward()
    off.unscale_(optimizer)
    off.step(optimizer)
    off.update()
    assert w.tolist() == [0.5, 0.5]
    scaler = scaler_of(device)
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    with pytest.raises(ValueError, match="iterable of Tensors"):
        scaler.scale(3)
    backward(scaler, w)
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: 0)
    with pytest.raises(AssertionError, match="prior to update"):
        scaler.update()
    with pytest.raises(AssertionError, match="growth factor"):
        scaler_of(device, growth_factor=1.0)
    half = nn.Parameter(torch.ones(2, dtype=torch.float16, device=device))
    half.grad = torch.ones_like(half)
    with pytest.raises(ValueError, match="FP16 gradients"):
        scaler.unscale_(torch.optim.SGD([half], lr=1.0))


def test_without_a_gpu_cudas_scaler_is_off():
    if torch.cuda.is_available():
        assert torch.cuda.amp.GradScaler().is_enabled()
        return
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not torch.cuda.amp.GradScaler().is_enabled()


def test_mixed_precision_learns(device):
    """The loop of the tutorials, with autocast."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)).to(device)
    x = torch.randn(64, 8).to(device)
    y = x[:, :1] * x[:, 1:2]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler = scaler_of(device, init_scale=2.0**10)
    values = []
    for _ in range(60):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            out = model(x)
            assert out.dtype == torch.bfloat16
            loss = nn.functional.mse_loss(out.float(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        values.append(loss.item())
    assert values[-1] < 0.3 * values[0]


def test_functions_of_ones_own_under_autocast(device):
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=device, cast_inputs=torch.float32)
        def forward(ctx, x):
            seen.append((x.dtype, torch.is_autocast_enabled(device)))
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type=device)
        def backward(ctx, grad):
            seen.append(torch.is_autocast_enabled(device))
            return grad * 2

    x = torch.ones(2, dtype=torch.bfloat16, device=device, requires_grad=True)
    with torch.autocast(device, dtype=torch.bfloat16):
        y = Double.apply(x)
        assert y.dtype == torch.float32
        y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert seen == [(torch.float32, False), False]
    assert Double.apply(x).dtype == torch.bfloat16


def test_step_tells_whether_it_stepped(device):
    scaler = scaler_of(device)
    w, optimizer = one_parameter(device)
    backward(scaler, w)
    assert scaler.step(optimizer) is True
    scaler.update()
    backward(scaler, w, float("inf"))
    assert scaler.step(optimizer) is False


def test_schedulers_know_a_skipped_step(device, recwarn):
    scaler = scaler_of(device)
    w, optimizer = one_parameter(device)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    backward(scaler, w, float("nan"))
    assert scaler.step(optimizer) is False
    scaler.update()
    scheduler.step()
    assert not [w for w in recwarn if "lr_scheduler" in str(w.message)]


def test_gradients_that_nobody_has(device):
    scaler = scaler_of(device)
    _, optimizer = one_parameter(device)
    scaler.scale(torch.ones((), device=device))
    with pytest.raises(AssertionError, match="No inf checks(.|\n)*1 parameters has a gradient"):
        scaler.step(optimizer)


def test_many_gradients_are_checked_together(device):
    """One that is not finite among many, of several dtypes and shapes."""
    shapes = [(3,), (2, 5), (), (7, 1, 2)] * 10
    grads = [torch.full(s, 8.0, device=device) for s in shapes]
    grads[5] = grads[5].bfloat16()
    found = torch.zeros((), device=device)
    inverse = torch.full((), 0.5, device=device)
    check = torch._C.ops["_amp_foreach_non_finite_check_and_unscale_"]
    check(grads, found, inverse)
    assert found.item() == 0 and all((g == 4).all() for g in grads)
    grads[23][..., 0] = float("inf")
    check(grads, found, inverse)
    assert found.item() == 1
    check(grads[:5], found, inverse)
    assert found.item() == 1  # it stays


def test_looking_without_touching(device):
    scaler = scaler_of(device)
    w, optimizer = one_parameter(device)
    backward(scaler, w, float("nan"))
    (found,) = scaler._check_inf_per_device(optimizer).values()
    assert found.item() == 1 and scaler._found_inf_per_device(optimizer)
    backward(scaler, w, 2.0)
    (found,) = scaler._check_inf_per_device(optimizer).values()
    assert found.item() == 0 and w.grad.tolist() == [2 * 65536] * 2
    assert scaler._get_scale_async().item() == 65536
