"""Random numbers are PyTorch's: the same seed gives the same draws on the CPU."""

import json
from pathlib import Path

import pytest
from record_random import run

import tessera as torch

CASES = json.loads((Path(__file__).parent / "data" / "random.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[1]}@{c[0]}")
def test_draws_are_pytorchs(case):
    seed, text, expected = case
    found = run(torch, seed, text)
    normal = any(word in text for word in ("randn", "normal", "exponential", "cauchy"))
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        if isinstance(b, str) or not normal:
            assert a == b or (isinstance(b, float) and abs(a - b) <= 1e-8 * abs(b)), (a, b)
        else:  # the last bits depend on the mathematics of PyTorch's build
            assert abs(a - b) <= 4e-7 * max(1, abs(b)), (a, b)


def test_generators_are_their_own():
    g = torch.Generator()
    assert g.device == torch.device("cpu") and g.manual_seed(5) is g and g.initial_seed() == 5
    first = torch.rand(4, generator=g).tolist()
    torch.manual_seed(5)
    assert torch.rand(4).tolist() == first
    state = g.get_state()
    second = torch.randn(3, generator=g).tolist()
    g.set_state(state)
    assert torch.randn(3, generator=g).tolist() == second
    copied = torch.Generator()
    copied.set_state(g.get_state())
    assert torch.randperm(9, generator=g).tolist() == torch.randperm(9, generator=copied).tolist()
    with pytest.raises(RuntimeError):
        g.set_state(torch.zeros(10, dtype=torch.uint8))
    with pytest.raises(TypeError):
        g.set_state(torch.zeros(5056))


def test_state_of_the_default_generator():
    torch.manual_seed(1)
    torch.randn(3)  # leaves a cached normal number
    state = torch.get_rng_state()
    assert state.dtype == torch.uint8 and state.shape == (5056,)
    first = torch.randn(3).tolist()
    torch.set_rng_state(state)
    assert torch.randn(3).tolist() == first
    with torch.random.fork_rng():
        torch.rand(10)
    torch.set_rng_state(state)
    with torch.random.fork_rng():
        torch.rand(10)
    assert torch.randn(3).tolist() == first


@pytest.mark.parametrize(
    "text, error",
    [
        ("torch.randint(5, 5, (2,))", RuntimeError),
        ("torch.randint(0, 300, (2,), dtype=torch.uint8)", RuntimeError),
        ("torch.empty(2).uniform_(3, 1)", RuntimeError),
        ("torch.empty(2).normal_(0, -1)", RuntimeError),
        ("torch.empty(2).bernoulli_(1.5)", RuntimeError),
        ("torch.multinomial(torch.tensor([0.5, 0.5]), 3)", RuntimeError),
        ("torch.multinomial(torch.tensor([-0.5, 0.5]), 1)", RuntimeError),
        ("torch.multinomial(torch.tensor([0.0, 0.0]), 1)", RuntimeError),
        ("torch.multinomial(torch.tensor([1, 2]), 1)", RuntimeError),
        ("torch.randperm(-1)", RuntimeError),
        ("torch.randperm(300, dtype=torch.uint8)", RuntimeError),
        ("torch.empty(2).exponential_(-1)", RuntimeError),
        ("torch.poisson(torch.tensor([-1.0]))", RuntimeError),
        ("torch.rand(2, dtype=torch.int64)", NotImplementedError),
        ("torch.rand(2, generator=3)", TypeError),
    ],
)
def test_errors(text, error):
    with pytest.raises(error):
        eval(text)


def test_permutations_are_permutations(device):
    p = torch.randperm(1000, device=device)
    assert sorted(p.tolist()) == list(range(1000))


def test_weights_decide(device):
    torch.manual_seed(0)
    w = torch.tensor([0.0, 1.0, 3.0], device=device)
    drawn = torch.multinomial(w, 4000, replacement=True).tolist()
    assert drawn.count(0) == 0 and 2800 < drawn.count(2) < 3200


def test_wide_integers_do_not_repeat(accelerator):
    """Each takes two words: a second draw must not begin within the first."""
    torch.manual_seed(3)
    first = torch.randint(0, 1 << 40, (4000,), device=accelerator)
    second = torch.randint(0, 1 << 40, (4000,), device=accelerator)
    assert not set(first.tolist()) & set(second.tolist())
