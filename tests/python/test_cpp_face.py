"""The C++ face's layers, optimizers and schedules are those of Python: names, numbers, text.

The program `cpp_face` (tests/nn/faces) makes every layer of the C++ face from a fixed seed, runs it
and prints everything as JSON, with the Python text that makes the same. Here that text is run.
"""

import json
import os
import re
import subprocess
import warnings
from collections import OrderedDict
from pathlib import Path

import pytest
from conftest import KIND

import tessera as torch
from tessera import nn, optim

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(torch._C.__file__).parents[2] / "bin" / "cpp_face"

# Layers that only Python has, and why.
PYTHON_ONLY = {
    "Module": "the base class",
    "RNNBase": "a base class",
    "RNNCellBase": "a base class",
    "Container": "an old name of Module",
    "NLLLoss2d": "an old name of NLLLoss",
    "ParameterDict": "C++ registers parameters by name",
    "ParameterList": "C++ registers parameters by name",
    "SyncBatchNorm": "C++ has no processes to synchronise with",
}
# Base classes of the C++ face, which nobody makes.
CPP_BASES = set(
    "AdaptiveAvgPoolNd AdaptiveMaxPoolNd AdaptivePoolNd AvgPoolNd BatchNormNd ConvNd "
    "ConvTransposeNd DropoutBase FractionalMaxPoolNd InstanceNormNd LPPoolNd Loss Loss3 "
    "MaxPoolNd MaxUnpoolNd NormBase PadNd Pointwise RNNBase RNNCellBase WeightedLoss".split()
)


def run(*arguments):
    """The program's lines, each a piece of JSON."""
    env = {k: v for k, v in os.environ.items() if k != "TESSERA_VIRTUAL_GPU"}
    command = [PROGRAM, *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def records():
    return run() if KIND == "cpu" and PROGRAM.exists() else []


RECORDS = records()
pytestmark = pytest.mark.skipif(
    not RECORDS,
    reason="compares numbers of the CPU" if KIND != "cpu" else f"{PROGRAM} is not built",
)


def of_kind(kind):
    """The cases of a kind, by a name of their own each."""
    some = [r for r in RECORDS if r["kind"] == kind]
    return pytest.mark.parametrize("case", some, ids=[r["python"] for r in some])


def layers():
    names = {n: getattr(nn.modules, n) for n in nn.modules.__all__}
    return {
        "torch": torch,
        "F": nn.functional,
        "init": nn.init,
        "OrderedDict": OrderedDict,
        **names,
    }


def optimizers():
    return {n: getattr(optim, n) for n in dir(optim) if isinstance(getattr(optim, n), type)}


def assert_same(got, want, what, tolerance=0.0):
    """A tensor, and what C++ had in its place."""
    if got is None or want is None:
        assert got is None and want is None, what
        return
    assert list(got.shape) == want["shape"], what
    assert str(got.dtype) == "torch." + want["dtype"], what
    values = got.detach().double().reshape(-1).tolist()
    if tolerance:
        assert values == pytest.approx(want["values"], rel=tolerance, abs=tolerance), what
    else:
        assert repr(values) == repr([float(v) for v in want["values"]]), what


def assert_same_names(got, want, what, tolerance=0.0):
    assert [name for name, _ in got] == [name for name, _ in want], what
    for (name, a), (_, b) in zip(got, want):
        assert_same(a, b, f"{what} {name}", tolerance)


def flat(out):
    return [x for o in out for x in flat(o)] if isinstance(out, (tuple, list)) else [out]


@of_kind("layer")
def test_layer(case):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = eval(case["python"], layers())
    assert type(layer).__name__ == case["class"]
    if "lambda" not in case["python"]:
        assert repr(layer) == case["repr"]
    assert_same_names(list(layer.state_dict().items()), case["before"], "at first:")
    if not case["out"]:
        return
    arguments = eval(f"[{case['inputs']}]", layers())
    # The weights of each head are what C++ was asked for where keys and values have other sizes.
    options = {"average_attn_weights": False} if "kdim" in case["python"] else {}
    outs = flat(layer(*arguments, **options))
    assert len(outs) == len(case["out"])
    for i, (got, want) in enumerate(zip(outs, case["out"])):
        assert_same(got, want, f"result {i}")
    total = [o.sum() for o in outs if o is not None and o.requires_grad]
    if total:
        sum(total[1:], total[0]).backward()
        grads = [(name, p.grad) for name, p in layer.named_parameters()]
        assert_same_names(grads, case["grads"], "gradients:")
    assert_same_names(list(layer.state_dict().items()), case["after"], "at last:")


@of_kind("value")
def test_first_values_and_functions(case):
    torch.manual_seed(0)
    assert_same(eval(case["python"], layers()), case["value"], "value")


@of_kind("optimizer")
def test_optimizer(case):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
    x, y = torch.randn(6, 4), torch.randn(6, 2)
    optimizer = eval(case["python"], {"net": net, **optimizers()})

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        return loss

    # L-BFGS searches with doubles in C++ where Python has tensors.
    tolerance = 1e-4 if "LBFGS" in case["python"] else 0.0
    for i, want in enumerate(case["losses"]):
        assert_same(optimizer.step(closure), want, f"loss {i}", tolerance)
    assert_same_names(list(net.state_dict().items()), case["params"], "parameters:", tolerance)


@of_kind("scheduler")
def test_scheduler(case):
    net = nn.Linear(2, 2)
    opt = optim.SGD([{"params": net.weight, "lr": 0.5}, {"params": net.bias}], lr=0.2, momentum=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler = eval(case["python"], {"opt": opt, **vars(optim.lr_scheduler)})
    seen = []
    for i in range(24):
        seen += [group["lr"] for group in opt.param_groups] + [opt.param_groups[0]["momentum"]]
        opt.step()
        if "Plateau" in case["python"]:
            scheduler.step(1.0 / (i + 1) if i % 7 == 0 else 2.0)
        else:
            scheduler.step()
    seen += scheduler.get_last_lr()
    assert seen == pytest.approx(case["value"]["values"], rel=1e-14, abs=0)


def network(seed):
    torch.manual_seed(seed)
    layers = {"conv": nn.Conv1d(2, 3, 2), "norm": nn.BatchNorm1d(3), "flat": nn.Flatten()}
    return nn.Sequential(OrderedDict(layers, fc=nn.Linear(9, 2)))


def test_python_reads_what_cpp_saves(tmp_path):
    run("save", tmp_path / "net.pt")
    state = torch.load(tmp_path / "net.pt")
    wanted = network(7).state_dict()
    assert list(state) == list(wanted)
    assert all(torch.equal(state[name], wanted[name]) for name in wanted)
    network(0).load_state_dict(state)


def test_cpp_reads_what_python_saves(tmp_path):
    net = network(3)
    net(torch.randn(5, 2, 4))
    torch.save(net.state_dict(), tmp_path / "net.pt")
    torch.manual_seed(0)
    assert_same(net.eval()(torch.randn(2, 2, 4)), run("load", tmp_path / "net.pt")[0], "result")


OPTIMIZERS = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "AdamW": {"lr": 0.1, "amsgrad": True},
    "NAdam": {},
    "Rprop": {"lr": 0.1},
}


def go_on(prefix, name, from_files):
    """What `cpp_face train` and `resume` do."""
    net = nn.Linear(3, 2)
    optimizer = getattr(optim, name)(net.parameters(), **OPTIMIZERS[name])
    if from_files:
        net.load_state_dict(torch.load(f"{prefix}.net.pt"))
        optimizer.load_state_dict(torch.load(f"{prefix}.opt.pt"))
    torch.manual_seed(0)
    x = torch.randn(5, 3)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        losses += loss.reshape(1).tolist()
        loss.backward()
        optimizer.step()
    torch.save(net.state_dict(), f"{prefix}.net.pt")
    torch.save(optimizer.state_dict(), f"{prefix}.opt.pt")
    return losses


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_in_the_other_language(tmp_path, name):
    here, there = tmp_path / "here", tmp_path / "there"

    def cpp(prefix, what):
        return [v for line in run(what, prefix, name) for v in line["values"]]

    go_on(here, name, False)
    for suffix in (".net.pt", ".opt.pt"):
        (tmp_path / f"there{suffix}").write_bytes((tmp_path / f"here{suffix}").read_bytes())
    # Python goes on with its own files; C++ with copies, then Python with what C++ wrote.
    assert go_on(here, name, True) == cpp(there, "resume")
    assert go_on(here, name, True) == go_on(there, name, True)
    assert go_on(here, name, True) == cpp(there, "resume")


# ---- nothing is left out ------------------------------------------------------------------------


def test_both_faces_have_the_same_layers():
    ours = {r["class"] for r in RECORDS if r["kind"] == "layer"}
    theirs = {n for n in nn.modules.__all__ if not n.startswith("Lazy")}
    assert theirs - ours - set(PYTHON_ONLY) == set(), "layers that the C++ face lacks"
    assert ours - theirs == set(), "layers that the Python face lacks"
    assert ours & set(PYTHON_ONLY) == set(), "layers that are no longer Python's alone"


def test_every_layer_of_the_headers_is_compared():
    declared = set()
    for header in (ROOT / "src" / "tessera" / "nn").glob("*.h"):
        text = header.read_text()
        declared |= set(re.findall(r"^class (\w+) : public \w+ {", text, re.M))
        declared |= set(re.findall(r"^TS_\w+\((\w+)", text, re.M))
    ours = {r["class"] for r in RECORDS if r["kind"] == "layer"}
    assert len(declared) > 100
    assert declared - CPP_BASES == ours


def test_both_faces_have_the_same_optimizers_and_schedulers():
    def named(kind):
        return {r["python"].split("(")[0] for r in RECORDS if r["kind"] == kind}

    python_only = {"Optimizer", "Adafactor", "Muon", "SparseAdam"}
    assert named("optimizer") == set(optimizers()) - python_only
    assert named("scheduler") == set(optim.lr_scheduler.__all__) - {"LRScheduler"}
