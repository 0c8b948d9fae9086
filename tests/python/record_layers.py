"""Records what PyTorch's layers do, for the tests of nn: parameters, outputs and gradients.

    python3 tests/python/record_layers.py tests/python/data/layers.json

with an interpreter that has PyTorch.
"""

import json
import sys
import warnings

import torch
from layers import CASES, INITS, key, run, run_init


def rounded(value):
    """Short numbers: what the tests compare to."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return value


def main():
    warnings.simplefilter("ignore")
    recorded = {"torch": torch.__version__}
    for case in CASES:
        if not case[2].get("new"):
            recorded[key(case)] = rounded(run(torch, case))
    for call, shape in INITS:
        recorded[f"init {call} {shape}"] = rounded(run_init(torch, call, shape))
    with open(sys.argv[1], "w", encoding="ascii") as file:
        file.write("{\n")
        file.write(",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in recorded.items()))
        file.write("\n}\n")


if __name__ == "__main__":
    main()
