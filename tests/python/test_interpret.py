"""Groups whose kernels are not compiled yet are interpreted: the same bits, and nobody waits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tessera as torch

PROGRAM = """
import hashlib, json, sys
import tessera as torch
from tessera import nn
from tessera.nn import functional as F

torch.manual_seed(1)
digests = {}


def note(name, *tensors):
    for t in tensors:
        data = t.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes()
        digests.setdefault(name, []).append(hashlib.sha256(data).hexdigest())


special = torch.tensor([0.0, -0.0, 1e-40, -1.5, 3.25, float("inf"), -float("inf"), float("nan")])
for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
    x = torch.cat([torch.randn(1000), special]).to("cuda", dtype)
    y = x.flip(0) + 0.5
    note(f"chain {dtype}", ((x + y * 2).exp().sin() - y).clamp(-3, 3), torch.where(x > y, x, -y))
    note(f"names {dtype}", F.gelu(x), x.sigmoid().log1p(), (x / y).floor(), torch.pow(x, 3))
    note(f"special {dtype}", torch.lgamma(x.abs() + 1) * 2, torch.erfinv(x * 0.1))
    w = x[:1000].view(10, 20, 5).transpose(0, 2)
    note(f"strided {dtype}", w * 2 + w[:, :1], w[::2].neg().abs() + y[:10])
    z = x.clone()
    z[3:900].mul_(2).add_(y[3:900])
    note(f"in place {dtype}", z, x == z, x.isnan() | (y > 1))
    note(f"company {dtype}", (x * 2).sum(), torch.softmax(x[:1000].view(20, 50) * 3, -1) + 1)
for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
    x = torch.arange(-100, 100).to("cuda", dtype)
    y = x.flip(0)
    note(f"whole {dtype}", (x + y) * 3, x & y, x * 0.3 + y, (x > y).to(dtype) + x)
# Of what is overwritten before anybody looks, an input is left that was never stored.
half = torch.tensor(-3.1, dtype=torch.float16, device="cuda")
half.lerp_(torch.ones_like(half), 0.5)
y = torch.masked.logaddexp(half, half.reshape(-1), dtype=torch.float64, other_mask=half < 0)
y.copy_(half)
note("dropped", y, half)
if sys.argv[1:] != ["short"]:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(12, 8).cuda(), torch.arange(12).cuda() % 3
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        note("loss", loss)
    note("model", *model.parameters())
json.dump(digests, sys.stdout)
"""


def run(mode, folder, *arguments):
    log = folder / f"{mode}.log"
    log.unlink(missing_ok=True)
    env = {**os.environ, "TESSERA_INTERPRET": mode, "TESSERA_COMPILE_LOG": str(log)}
    env["TESSERA_CACHE_DIR"] = str(folder / mode)
    env["TESSERA_KERNEL_PACK"] = "0"
    env["TESSERA_FUSE"] = "1"
    program = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(program, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines() if log.exists() else []
    return json.loads(done.stdout), [line.split(" ", 3)[2:] for line in lines]


def test_the_same_bits(compiles, tmp_path):
    compiled, waits = run("0", tmp_path)
    assert ["later", "add"] not in waits
    always, kernels = run("always", tmp_path)
    names = [what for how, what in kernels if how == "compiled"]
    assert "interpret" in names and "add" not in names
    assert always == compiled


def test_nobody_waits(compiles, tmp_path):
    compiled, _ = run("0", tmp_path, "short")
    meanwhile, waits = run("1", tmp_path, "short")
    assert meanwhile == compiled
    later = [what for how, what in waits if how == "later"]
    assert {"add", "softmax", "sum"} <= set(later)
    # What has a name of its own is waited for here, as no pack has it.
    assert not set(later) & {what for how, what in waits if how == "compiled"} - {"softmax", "sum"}
    # The next process finds all that was made.
    again, waits = run("1", tmp_path, "short")
    assert again == compiled
    assert not [what for how, what in waits if how == "compiled"]


def start(program, folder, **variables):
    """What it printed, and the lines of its log."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    env = {**os.environ, "TESSERA_INTERPRET": "1", "TESSERA_COMPILE_LOG": str(log)}
    env |= {"TESSERA_CACHE_DIR": str(folder), "TESSERA_FUSE": "1", "TESSERA_KERNEL_PACK": "0"}
    words = program if isinstance(program, list) else [sys.executable, "-c", program]
    done = subprocess.run(words, env=env | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = log.read_text().splitlines() if log.exists() else []
    return done.stdout.strip(), [line.split(" ", 3)[2:] for line in lines]


def test_a_graph_has_the_compiled_kernel(compiles, tmp_path):
    printed, waits = start(
        """
import tessera as torch
x = torch.ones(8, device="cuda")
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = (x + 1) * 3
x.fill_(4)
graph.replay()
print(y.tolist())
""",
        tmp_path,
    )
    assert printed == str([15.0] * 8)
    assert ["compiled", "add"] in waits


def test_groups_are_refused_before_any_has_run(compiles, tmp_path):
    """Complex numbers are not interpreted: where kernels are too many, all groups of a run go one
    by one, and none that was in the same launch is run twice."""
    program = """
import tessera as torch
real = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32)
tensors = [torch.ones(64 + i, device="cuda", dtype=d) for i, d in enumerate(real)]
tensors += [torch.ones(9, device="cuda", dtype=torch.complex64)]
torch.cuda.synchronize()
for _ in range(3):
    for x in tensors:
        x.add_(1).mul_(2)
    torch.cuda.synchronize()
print([set(x.tolist()) == {22} for x in tensors])
"""
    for mode in ("0", "1", "always", "single"):
        modes = {"TESSERA_INTERPRET": mode, "TESSERA_KERNEL_BUDGET": "0"}
        assert start(program, tmp_path, **modes)[0] == str([True] * 7), mode


def test_what_cannot_be_interpreted_goes_one_by_one(compiles, tmp_path):
    printed, waits = start(
        """
import tessera as torch
x = torch.ones(100, device="cuda", dtype=torch.complex64)
torch.cuda.synchronize()
for _ in range(3):
    y = (x * (1 + 2j)).conj_physical() + x
    print(y[7].item())
# A library's operand is brought into its layout, which nothing else could do.
m = torch.eye(3, device="cuda", dtype=torch.complex64) * 2
print(torch.linalg.inv(m.mT)[2, 2].item())
""",
        tmp_path,
    )
    assert printed.split() == ["(2-2j)"] * 3 + ["(0.5+0j)"]
    # The group is compiled meanwhile; its operators, which no pack has here, are waited for.
    assert ["later", "mul"] in waits
    assert {"mul", "add"} <= {what for how, what in waits if how == "compiled"}


def test_nobody_waits_in_a_program_in_cpp(compiles, tmp_path):
    """It ends while threads compile, too."""
    program = Path(torch._C._backend_file("cuda")).parent.parent / "bin" / "fuse_random"
    if not program.exists():
        pytest.skip("fuse_random is not built")
    printed, waits = start([str(program), "--programs", "3", "--device", "cuda"], tmp_path)
    assert "0 disagreements" in printed
    assert [how for how, _ in waits].count("later") > 10


REDUCTIONS = """
import hashlib
import tessera as torch
torch.manual_seed(1)
digest = hashlib.sha256()


def note(y):
    y = torch.view_as_real(y) if y.is_complex() else y
    digest.update(y.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())


for dtype, functions in {
    torch.bfloat16: (torch.sum, torch.any),
    torch.int64: (torch.amax,),
    torch.complex64: (torch.mean,),
}.items():
    for shape in ((33,), (10, 64), (3, 5000), (5000, 3), (6, 5, 4, 3), (2, 100000)):
        x = (torch.randn(shape) * 3).to(dtype).to("cuda")
        for v in (x, x[..., 1::2]):
            for dims in ([], *range(v.dim()), *([(0, 2)] if v.dim() > 2 else [])):
                for f in functions:
                    note(f(v, dim=dims))
print(digest.hexdigest())
"""


def test_reductions_of_any_form(compiles, tmp_path):
    folder = str(tmp_path / "exact")
    exact, _ = start(REDUCTIONS, tmp_path, TESSERA_INTERPRET="0", TESSERA_CACHE_DIR=folder)
    general, kernels = start(REDUCTIONS, tmp_path, TESSERA_INTERPRET="always")
    assert general == exact
    names = [what for _, what in kernels]
    assert names.count("reduce_any") == 4 and not {"sum", "any", "mean", "amax"} & set(names)
    # Where the general one is compiled, nobody waits for another.
    meanwhile, waits = start(REDUCTIONS, tmp_path)
    assert meanwhile == exact
    assert {"sum", "any", "mean", "amax"} <= {what for how, what in waits if how == "later"}
    assert not [what for how, what in waits if how == "compiled"]
