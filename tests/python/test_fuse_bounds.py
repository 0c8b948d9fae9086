"""A program whose structures never repeat does not have kernels made without end."""

import json
import os
import subprocess
import sys

PROGRAM = """
import itertools, json, sys
import tessera as torch

operators = [torch.add, torch.sub, torch.mul, torch.maximum]
x = torch.arange(1, 9, device="cuda", dtype=torch.float32)
y = x.flip(0).clone()
torch.cuda.synchronize()
begin = torch._C._compile_stats()
sums = []
for f, g, h in itertools.islice(itertools.product(operators, repeat=3), 0, None, 3):
    sums.append(h(g(f(x, y), x), y).tolist())
made = [b - a for a, b in zip(begin, torch._C._compile_stats())]
json.dump({"sums": sums, "made": max(made)}, sys.stdout)
"""


def run(budget):
    env = {**os.environ, "TESSERA_KERNEL_BUDGET": str(budget), "TESSERA_FUSE": "1"}
    env["TESSERA_INTERPRET"] = "0"
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_structures_that_never_repeat(compiles):
    few, many = run(8), run(1000)
    assert few["sums"] == many["sums"]
    assert many["made"] >= 22  # one for each structure
    assert few["made"] <= 8 + 6  # some structures, then the four operators
