"""Optimizers step complex parameters as pairs of reals, as PyTorch does; Muon steps matrices."""

import pytest

import tessera as torch
from tessera import nn

OPTIMIZERS = {
    "SGD": dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "Adam": dict(lr=0.1, amsgrad=True, weight_decay=0.1),
    "AdamW": dict(lr=0.1, amsgrad=True),
    "Adamax": dict(lr=0.1),
    "NAdam": dict(lr=0.1),
    "RAdam": dict(lr=0.1, betas=(0.5, 0.6)),
    "RMSprop": dict(lr=0.1, momentum=0.5, centered=True),
    "Adagrad": dict(lr=0.1, initial_accumulator_value=0.2),
    "Adadelta": dict(lr=0.5),
    "ASGD": dict(lr=0.1),
    "Rprop": dict(lr=0.1),
    "LBFGS": dict(lr=0.5, max_iter=3),
}


def losses(optimizer_of, parameters, value_of):
    """Six steps; what is minimised and where they end."""
    optimizer = optimizer_of(parameters)
    found = []

    def closure():
        optimizer.zero_grad()
        w, b = value_of()
        loss = ((A @ w).abs() ** 2).sum() + ((A @ w).real + b).pow(2).sum()
        loss.backward()
        found.append(loss.item())
        return loss

    for _ in range(6):
        optimizer.step(closure)
    return found


torch.manual_seed(1)
START, BIAS = torch.randn(3, dtype=torch.complex128), torch.randn(2, dtype=torch.float64)
A = torch.randn(2, 3, dtype=torch.complex128)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_complex_parameter_steps_as_its_parts(name):
    def make(parameters):
        return getattr(torch.optim, name)(parameters, **OPTIMIZERS[name])

    w, b = nn.Parameter(START.clone()), nn.Parameter(BIAS.clone())
    got = losses(make, [w, b], lambda: (w, b))
    pairs, c = nn.Parameter(torch.view_as_real(START).clone()), nn.Parameter(BIAS.clone())
    want = losses(make, [pairs, c], lambda: (torch.view_as_complex(pairs), c))
    assert got == pytest.approx(want, rel=1e-12)
    assert torch.allclose(torch.view_as_real(w.detach()), pairs.detach())
    assert got[-1] < got[0] and w.dtype == torch.complex128


def test_the_state_of_a_complex_parameter_is_complex():
    w = nn.Parameter(START.clone())
    optimizer = torch.optim.Adam([w])
    w.grad = torch.ones_like(w)
    optimizer.step()
    assert optimizer.state[w]["exp_avg"].dtype == torch.complex128
    again = torch.optim.Adam([w])
    again.load_state_dict(optimizer.state_dict())
    assert torch.equal(again.state[w]["exp_avg_sq"], optimizer.state[w]["exp_avg_sq"])


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_muon_steps_by_a_nearly_orthogonal_matrix(shape):
    torch.manual_seed(0)
    w = nn.Parameter(torch.randn(shape))
    before = w.detach().clone()
    optimizer = torch.optim.Muon([w], lr=0.1, weight_decay=0.0)
    w.grad = torch.randn(shape)
    optimizer.step()
    factor = 0.1 * max(1, shape[0] / shape[1]) ** 0.5
    step = (before - w.detach()) / factor
    values = torch.linalg.svdvals(step)
    assert values.min() > 0.6 and values.max() < 1.3
    # In the directions of the gradient.
    u, _, vh = torch.linalg.svd(w.grad, full_matrices=False)
    assert (u.T @ step @ vh.T).diagonal().min() > 0.5


def test_muon_learns_and_refuses():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16, bias=False), nn.Tanh(), nn.Linear(16, 4, bias=False))
    x, y = torch.randn(32, 8), torch.randn(32, 4)
    optimizer = torch.optim.Muon(model.parameters(), lr=0.2, adjust_lr_fn="match_rms_adamw")
    values = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    assert values[-1] < 0.5 * values[0]
    with pytest.raises(ValueError, match="2D parameters"):
        torch.optim.Muon([nn.Parameter(torch.ones(3))])
    with pytest.raises(ValueError, match="not supported"):
        torch.optim.Muon([nn.Parameter(torch.ones(3, 3))], adjust_lr_fn="none")
