"""Records PyTorch's random numbers: python-with-torch record_random.py data/random.json

Each case is a seed and an expression; every second one draws from a generator of its own.
"""

import json
import sys
from pathlib import Path

SIZES = (1, 2, 3, 7, 15, 16, 17, 31, 33, 100)
SEEDS = (0, 1, 42, 2**32 + 5, 2**63 - 1)

PER_SIZE = (
    "torch.rand({n})",
    "torch.rand({n}, dtype=torch.float64)",
    "torch.rand({n}, dtype=torch.float16)",
    "torch.rand({n}, dtype=torch.bfloat16)",
    "torch.randn({n})",
    "torch.randn({n}, dtype=torch.float64)",
    "torch.randint(0, 10, ({n},))",
    "torch.randint(-5, 2**40, ({n},))",
    "torch.randint(3, ({n},), dtype=torch.int32)",
    "torch.randperm({n})",
    "torch.empty({n}).uniform_(-2, 3)",
    "torch.empty({n}).normal_(1, 0.5)",
    "torch.empty({n}).bernoulli_(0.3)",
    "torch.bernoulli(torch.full(({n},), 0.4))",
)
SINGLE = (
    "torch.rand(3, 5)",
    "torch.randn(4, 9)",
    "torch.randn(3); torch.randn(3)",
    "torch.randn(2, dtype=torch.complex64)",
    "torch.randint(0, 2**33, (3, 3))",
    "torch.randperm(20, dtype=torch.int32)",
    "torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4]), 7, replacement=True)",
    "torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4]), 3)",
    "torch.multinomial(torch.tensor([[0.1, 0.9], [0.5, 0.5]], dtype=torch.float64), 1)",
    "torch.empty(5).exponential_(2.0)",
    "torch.empty(5, dtype=torch.float64).exponential_()",
    "torch.empty(5).cauchy_()",
    "torch.empty(5).geometric_(0.3)",
    "torch.empty(5).log_normal_()",
    "torch.poisson(torch.tensor([0.0, 0.5, 3.0, 20.0, 200.0]))",
    "torch.empty(4, dtype=torch.int64).random_()",
    "torch.empty(4, dtype=torch.uint8).random_()",
    "torch.empty(4).random_()",
    "torch.empty(4).random_(-3, 10)",
    "torch.normal(torch.ones(5), torch.ones(5))",
    "torch.normal(0.0, torch.full((20,), 2.0))",
    "torch.nn.functional.dropout(torch.ones(20), 0.25)",
    "torch.nn.functional.dropout1d(torch.ones(3, 4), 0.4)",
    "torch.nn.functional.dropout1d(torch.ones(3, 4), 0.4, inplace=True)",
    "torch.nn.functional.dropout2d(torch.ones(3, 4, 2, 2), 0.4)",
    "torch.nn.functional.dropout3d(torch.ones(3, 2, 2, 2), 0.4)",
    "torch.nn.functional.dropout3d(torch.ones(2, 3, 2, 2, 2, dtype=torch.float64), 0.4)",
    "torch.nn.functional.alpha_dropout(torch.arange(12.0), 0.3, training=True)",
    "torch.nn.functional.alpha_dropout(torch.arange(12.0), 0.3)",
    "torch.nn.functional.feature_alpha_dropout(torch.ones(3, 4, 2), 0.3, training=True)",
    "torch.feature_dropout(torch.ones(3, 4, 2), 0.5, True)",
    "torch.feature_alpha_dropout_(torch.ones(3, 4, 2), 0.5, True)",
    "torch.nn.functional.fractional_max_pool2d(torch.rand(2, 3, 9, 8), 2, (4, 5))",
    "torch.nn.functional.fractional_max_pool2d(torch.rand(3, 9, 8), (3, 2), output_ratio=0.5, "
    "return_indices=True)[1]",
    "torch.nn.functional.fractional_max_pool3d(torch.rand(2, 2, 5, 6, 7), 2, 3)",
    "torch.nn.functional.fractional_max_pool3d(torch.rand(2, 5, 6, 7), (2, 3, 2), "
    "output_ratio=(0.5, 0.6, 0.7), return_indices=True)[1]",
    "torch.nn.functional.fractional_max_pool2d(torch.rand(1, 2, 6, 6, dtype=torch.float64), 1, 1)",
    "torch.rand(2); torch.get_rng_state()",
    "torch.randn(3); torch.get_rng_state()",
)


def flat(value):
    if isinstance(value, list):
        return [x for v in value for x in flat(v)]
    return [value.real, value.imag] if isinstance(value, complex) else [value]


def run(torch, seed, text):
    """Statements before the last are run for what they draw."""
    torch.manual_seed(seed)
    *before, last = text.split("; ")
    for statement in before:
        eval(statement, {"torch": torch})
    values = flat(eval(last, {"torch": torch}).tolist())
    if "state" in last:  # long, and of use as a whole only
        import hashlib

        return [hashlib.sha256(bytes(values)).hexdigest()]
    return values


def cases():
    for number, text in enumerate(t.format(n=n) for t in PER_SIZE for n in SIZES):
        for seed in SEEDS[number % 2 :: 2]:
            yield seed, text
    for text in SINGLE:
        for seed in SEEDS:
            yield seed, text


def main():
    import torch

    lines = []
    for seed, text in cases():
        values = run(torch, seed, text)
        values = [float(f"{v:.9g}") if isinstance(v, float) else v for v in values]
        lines.append(json.dumps([seed, text, values]))
    Path(sys.argv[1]).write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{len(lines)} draws of PyTorch {torch.__version__}", file=sys.stderr)


if __name__ == "__main__":
    main()
