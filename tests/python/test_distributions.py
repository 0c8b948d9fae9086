"""torch.distributions: samples from a seed, densities, moments and divergences are PyTorch's."""

import json
from pathlib import Path

import pytest
from conftest import KIND
from distribution_cases import divergences, facts, flat, simple

import tessera as torch
from tessera import distributions as D
from tessera.distributions import constraints, kl_divergence

RECORDED = json.loads((Path(__file__).parent / "data" / "distributions.json").read_text())
DISTRIBUTIONS = dict(simple(torch))
pytestmark = pytest.mark.skipif(KIND != "cpu", reason="the CPU's random numbers")


def close(got, want):
    assert got == pytest.approx(want, rel=2e-5, abs=2e-6, nan_ok=True)


def test_every_distribution_is_recorded():
    assert [*DISTRIBUTIONS, "divergences"] == list(RECORDED)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_facts_are_pytorchs(name):
    got, want = facts(torch, DISTRIBUTIONS[name]), RECORDED[name]
    for key, value in want.items():
        if key == "expanded":
            assert got[key][0] == value[0]
            close(got[key][1], value[1])
        else:
            close(got[key], value)


@pytest.mark.parametrize("name, p, q", list(divergences(torch)))
def test_divergences_are_pytorchs(name, p, q):
    close(flat(kl_divergence(p, q)), RECORDED["divergences"][name])
    close(flat(kl_divergence(p, p)), [0.0] * kl_divergence(p, p).numel())


def test_gradients():
    mean, spread = torch.tensor(0.5, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    d = D.Normal(mean, spread)
    d.rsample((5,)).sum().backward()
    assert mean.grad.item() == 5
    assert not d.sample().requires_grad
    logits = torch.zeros(3, requires_grad=True)
    D.Categorical(logits=logits).log_prob(torch.tensor(1)).backward()
    assert logits.grad.tolist() == pytest.approx([-1 / 3, 2 / 3, -1 / 3])
    through = D.OneHotCategoricalStraightThrough(logits=torch.zeros(3, requires_grad=True))
    assert through.rsample().requires_grad


def test_a_policy_learns():
    """REINFORCE with a categorical policy, as people write it."""
    torch.manual_seed(0)
    policy = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
    states = torch.randn(200, 4)
    best = (states[:, 0] > states[:, 1]).long()
    shares = []
    for _ in range(40):
        choices = D.Categorical(logits=policy(states))
        actions = choices.sample()
        reward = (actions == best).float()
        loss = -(choices.log_prob(actions) * (reward - reward.mean())).mean()
        loss = loss - 0.01 * choices.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shares.append(reward.mean().item())
    assert shares[-1] > 0.85


def test_refusals():
    with pytest.raises(ValueError, match="Expected parameter scale"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="within the support"):
        D.Normal(0.0, 1.0).log_prob(torch.tensor(float("nan")))
    with pytest.raises(ValueError, match="Expected parameter probs"):
        D.Categorical(probs=torch.tensor([-1.0, 2.0]))
    with pytest.raises(ValueError, match="not both"):
        D.Bernoulli(probs=0.5, logits=0.1)
    with pytest.raises(ValueError, match="low>= high"):
        D.Uniform(1.0, 0.0)
    with pytest.raises(ValueError, match="not broadcastable"):
        D.Normal(torch.zeros(3), 1.0).log_prob(torch.zeros(2))
    with pytest.raises(NotImplementedError, match="No KL"):
        kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))
    with pytest.raises(NotImplementedError, match="Beta are not implemented"):
        D.Beta(1.0, 2.0).sample()
    with pytest.raises(NotImplementedError, match="torch.distributions.Wishart"):
        D.Wishart(1)
    D.Normal(0.0, -1.0, validate_args=False)


def test_odds_and_ends():
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Normal(torch.zeros(2), 1.0)) == (
        "Normal(loc: torch.Size([2]), scale: torch.Size([2]))"
    )
    from tessera.distributions.categorical import Categorical
    from tessera.distributions.normal import Normal

    assert Normal is D.Normal and Categorical is D.Categorical
    assert D.Categorical(torch.ones(3)).enumerate_support().tolist() == [0, 1, 2]
    assert constraints.positive.check(torch.tensor([1.0, -1.0])).tolist() == [True, False]
    assert constraints.simplex.check(torch.tensor([0.5, 0.5])).item()
    assert not constraints.lower_cholesky.check(torch.ones(2, 2)).item()
    mean = D.Normal(torch.zeros(2), 1.0).sample((1000,)).mean(0)
    assert mean.abs().max() < 0.2


def test_a_divergence_of_transformed_ones_asks_for_equal_transforms():
    def moved(*transforms):
        return D.TransformedDistribution(D.Normal(0.0, 1.0), list(transforms))

    affine, power = D.AffineTransform, D.transforms.PowerTransform
    assert kl_divergence(moved(affine(0, 2)), moved(affine(0, 2))).item() == 0
    with pytest.raises(NotImplementedError):
        kl_divergence(moved(affine(0, 2)), moved(affine(0, 3)))
    with pytest.raises(NotImplementedError):
        kl_divergence(moved(power(torch.tensor(2.0))), moved(power(torch.tensor(3.0))))
    close(kl_divergence(D.LogNormal(0.0, 1.0), D.LogNormal(1.0, 2.0)).item(), 0.44314718)


def test_transforms_are_equal_where_they_do_the_same():
    t = D.transforms
    assert t.ExpTransform() == t.ExpTransform() and t.ExpTransform().inv == t.ExpTransform().inv
    assert t.ExpTransform() != t.TanhTransform()
    assert t.AffineTransform(torch.tensor(1.0), 2.0) == t.AffineTransform(1.0, 2.0)
    both = [t.ComposeTransform([t.ExpTransform(), t.AffineTransform(1.0, 2.0)]) for _ in "ab"]
    assert both[0] == both[1] and len({*both}) == 1
