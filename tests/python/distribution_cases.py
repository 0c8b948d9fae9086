"""Distributions from a seed, for the test and its recorder:

    python3 tests/python/distribution_cases.py tests/python/data/distributions.json

with an interpreter that has PyTorch.
"""


def drawn(torch):
    """Numbers and positive numbers, always the same ones."""
    generator = torch.Generator().manual_seed(0)

    def real(*shape):
        return torch.randn(*shape, generator=generator)

    def positive(*shape):
        return torch.rand(*shape, generator=generator) + 0.2

    return real, positive


def simple(torch):
    """name: distribution"""
    D = torch.distributions
    r, p = drawn(torch)
    yield "Normal", D.Normal(r(3), p(3))
    yield "Uniform", D.Uniform(r(3) - 3, p(3) + 1)
    yield "Exponential", D.Exponential(p(3))
    yield "Laplace", D.Laplace(r(3), p(3))
    yield "Cauchy", D.Cauchy(r(3), p(3))
    yield "LogNormal", D.LogNormal(r(3), p(3))
    yield "HalfNormal", D.HalfNormal(p(3))
    yield "Gumbel", D.Gumbel(r(3), p(3))
    yield "Bernoulli", D.Bernoulli(torch.sigmoid(r(3)))
    yield "Bernoulli of logits", D.Bernoulli(logits=r(2, 2))
    yield "Categorical", D.Categorical(torch.softmax(r(2, 4), -1))
    yield "Categorical of logits", D.Categorical(logits=r(3, 5))
    yield "OneHotCategorical", D.OneHotCategorical(torch.softmax(r(2, 4), -1))
    yield "Geometric", D.Geometric(torch.sigmoid(r(3)))
    yield "Poisson", D.Poisson(p(3) * 3)
    matrix = torch.eye(3) * 0.5 + 0.2
    yield "MultivariateNormal", D.MultivariateNormal(r(2, 3), matrix)
    yield "MultivariateNormal of precision", D.MultivariateNormal(r(3), precision_matrix=matrix)
    yield "Independent", D.Independent(D.Normal(r(2, 3), p(2, 3)), 1)
    tanh = [D.transforms.TanhTransform(), D.transforms.AffineTransform(1.0, 2.0)]
    yield "tanh of Normal", D.TransformedDistribution(D.Normal(r(3), p(3)), tanh)
    whole = D.Independent(D.Normal(r(3), p(3)), 1)
    cached = [D.transforms.TanhTransform(cache_size=1)]
    yield "tanh of vectors", D.TransformedDistribution(whole, cached)
    logistic = [
        D.transforms.SigmoidTransform().inv,
        D.transforms.AffineTransform(loc=torch.tensor(1.0), scale=torch.tensor(-2.0)),
    ]
    zero, one = torch.tensor(0.0), torch.tensor(1.0)
    yield "logistic", D.TransformedDistribution(D.Uniform(zero, one), logistic)
    yield "mixture", D.MixtureSameFamily(D.Categorical(p(4)), D.Normal(r(4), p(4)))
    parts = D.Independent(D.Normal(r(3, 4, 2), p(3, 4, 2)), 1)
    yield "mixture of vectors", D.MixtureSameFamily(D.Categorical(p(3, 4)), parts)


def divergences(torch):
    """name: two distributions of one kind"""
    D = torch.distributions
    r, p = drawn(torch)
    for name, make in {
        "Normal": lambda: D.Normal(r(3), p(3)),
        "Bernoulli": lambda: D.Bernoulli(torch.sigmoid(r(3))),
        "Categorical": lambda: D.Categorical(logits=r(4)),
        "OneHotCategorical": lambda: D.OneHotCategorical(logits=r(4)),
        "Exponential": lambda: D.Exponential(p(2)),
        "Laplace": lambda: D.Laplace(r(2), p(2)),
        "Poisson": lambda: D.Poisson(p(2)),
        "Gamma": lambda: D.Gamma(p(2), p(2)),
        "Beta": lambda: D.Beta(p(2), p(2)),
        "Dirichlet": lambda: D.Dirichlet(p(3)),
        "LogNormal": lambda: D.LogNormal(r(2), p(2)),
        "Independent": lambda: D.Independent(D.Normal(r(2, 3), p(2, 3)), 1),
        "MultivariateNormal": lambda: D.MultivariateNormal(
            r(3), torch.eye(3) * p(1) + 0.1 * torch.ones(3, 3)
        ),
    }.items():
        yield name, make(), make()


def flat(tensor):
    return [round(float(v), 7) for v in tensor.detach().flatten().tolist()]


def facts(torch, d):
    """Shapes, samples from a seed, and what depends on them."""
    torch.manual_seed(1)
    samples = d.sample((2,))
    found = {
        "batch": list(d.batch_shape),
        "event": list(d.event_shape),
        "sample": flat(samples),
        "log_prob": flat(d.log_prob(samples)),
    }
    if d.has_rsample:
        found["rsample"] = flat(d.rsample((2,)))
    for name in ("mean", "variance", "entropy"):
        try:
            value = getattr(d, name)
            found[name] = flat(value() if callable(value) else value)
        except NotImplementedError:
            pass
    for name in ("cdf", "icdf"):
        try:
            at = samples if name == "cdf" else torch.full_like(samples, 0.3)
            found[name] = flat(getattr(d, name)(at))
        except (NotImplementedError, TypeError):
            pass
    try:
        wide = d.expand((4, *d.batch_shape))
        found["expanded"] = [list(wide.batch_shape), flat(wide.log_prob(samples[0]))]
    except NotImplementedError:
        pass
    return found


def everything(torch):
    found = {name: facts(torch, d) for name, d in simple(torch)}
    kl = torch.distributions.kl_divergence
    found["divergences"] = {name: flat(kl(p, q)) for name, p, q in divergences(torch)}
    return found


if __name__ == "__main__":
    import json
    import sys

    import torch
    import torch.distributions

    recorded = everything(torch)
    with open(sys.argv[1], "w", encoding="ascii") as file:
        json.dump(recorded, file, separators=(",", ":"))
        file.write("\n")
    print(len(recorded), "recorded")
