"""gradcheck and gradgradcheck of every operator that has a derivative, in 64 bits.

The calls are the records' samples, also in place, and those of gradcheck_calls.py for operators
that have none. What is exempt is named, with its reason, in data/gradcheck_exceptions.txt.
"""

import functools
from collections import Counter
from pathlib import Path

import pytest
from conftest import KIND
from gradcheck_calls import calls
from samples import Arguments, Numbers, nested, tensors_in

import tessera as torch
from tessera.autograd import gradcheck, gradgradcheck
from tessera.utils._pytree import tree_map

pytestmark = pytest.mark.skipif(KIND != "cpu", reason="the formulas are the same everywhere")

EXEMPT = {"first": {}, "second": {}}
for line in (Path(__file__).parent / "data" / "gradcheck_exceptions.txt").read_text().splitlines():
    if not line.startswith("#"):
        order, _, rest = line.partition(" ")
        name, _, reason = rest.partition(": ")
        EXEMPT[order][tuple(name.split(maxsplit=1))] = reason
DTYPES = ("float64", "complex128")
WRITTEN = "written out"
FAMILIES = sorted({op["family"] for op in torch._C.all_ops()}) + [WRITTEN]
CHECKS = {"first": gradcheck, "second": gradgradcheck}
# Public operators that no call here reaches, and why.
UNREACHED = {
    "draws over the tensor": "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ "
    "random_ uniform_ svd_lowrank pca_lowrank lobpcg",
    "changes memory, not values": "resize_ resize_as_ set_ embedding_renorm_",
    "no derivative in PyTorch; backward raises": "geqrf linalg_ldl_factor_ex linalg_ldl_solve",
    "its result has no derivative": "is_same_size masked_argmax masked_argmin",
}


def function_of(op):
    path = op["paths"][0]
    return torch._C.ops[path] if path in torch._C.ops else getattr(torch.Tensor, op["name"])


class Case:
    """A function of tensors that want gradients; `inputs` is empty where there is nothing to do."""

    def __init__(self, name, text, function, inputs):
        self.name, self.text = name, text
        self.dtype = str(inputs[0].dtype).removeprefix("torch.") if inputs else ""
        self._function, self.inputs = function, inputs

    def __call__(self, *inputs):
        torch.manual_seed(3)  # what draws, draws the same each time
        return tuple(tensors_in(self._function(*inputs)))

    def has_derivative(self):
        return bool(self.inputs) and any(out.requires_grad for out in self(*self.inputs))


def sampled(op, sample, dtype, inplace=False):
    given = Arguments(torch, sample, dtype, requires_grad=True)
    inputs = [t for t in given.tensors if t.requires_grad and t.numel() > 0]
    function = function_of(op)

    def call(*moved):
        new = {id(a): b for a, b in zip(inputs, moved)}
        args, kwargs = tree_map(
            lambda leaf: new.get(id(leaf), leaf), (list(given.args), dict(given.kwargs))
        )
        if not inplace:
            return function(*args, **kwargs)
        first, *rest = args
        written = first * 1
        getattr(written, op["name"] + "_")(*rest, **kwargs)
        return written

    case = Case(op["name"], sample + (" in place" if inplace else ""), call, inputs)
    case.fits_in_place = inputs and given.args and given.args[0] is inputs[0]
    return case


def written(name, function, shapes, dtype):
    numbers = Numbers(5)
    inputs = [
        (torch.tensor(nested(shape, numbers, dtype), dtype=getattr(torch, dtype)) / 4)
        .reshape(shape)
        .requires_grad_()
        for shape in shapes
    ]
    return Case(name, str(shapes), function, inputs)


@functools.cache
def cases(dtype, family):
    """All cases of a family's operators; one may refuse complex numbers."""
    if family == WRITTEN:
        if dtype != "float64":
            return []
        return [written(name, function, shapes, dtype) for name, function, shapes in calls(torch)]
    found = []
    for op in torch._C.all_ops():
        for sample in op["samples"] if op["family"] == family else ():
            case = sampled(op, sample, dtype)
            if not derivative(case, dtype):
                continue
            found.append(case)
            if not {"method", "inplace"} <= set(op["forms"]) or not case.fits_in_place:
                continue
            (result,) = case(*case.inputs) if op["single"] else (None,)
            first = case.inputs[0]
            if result is not None and (result.shape, result.dtype) == (first.shape, first.dtype):
                found.append(sampled(op, sample, dtype, inplace=True))
    return found


def derivative(case, dtype):
    try:
        return case.has_derivative()
    except (NotImplementedError, RuntimeError, TypeError):
        assert dtype == "complex128", f"{case.name}({case.text}) does not run"
        return False


def everything():
    return [case for dtype in DTYPES for family in FAMILIES for case in cases(dtype, family)]


COUNTS = Counter()


def has_constant_gradient(case):
    """Its gradient does not depend on anything: then it is zero, as that of rounding."""
    outs = [out for out in case(*case.inputs) if out.requires_grad]
    grads = torch.autograd.grad(
        outs,
        case.inputs,
        [torch.ones_like(out) for out in outs],
        create_graph=True,
        allow_unused=True,
    )
    grads = [g for g in grads if g is not None]
    return all(not g.requires_grad and not g.any() for g in grads)


def is_exempt(case, order):
    """All cases of an operator, or those of a dtype or with a word in their text."""
    for name, *words in [*EXEMPT["first"], *EXEMPT[order]]:
        if name == case.name and all(w in case.text or w == case.dtype for w in words):
            return True
    return False


def failure(case, order):
    """What is wrong; nothing where the check passes or the case is exempt and fails."""
    exempt = is_exempt(case, order)
    try:
        if order == "second" and not exempt and has_constant_gradient(case):
            COUNTS[order, "constant"] += 1
            return ""
        CHECKS[order](case, case.inputs)
    except Exception as error:
        if exempt:
            COUNTS[order, "exempt"] += 1
            return ""
        return f"{case.name}({case.text}): {type(error).__name__}: {error}"
    if exempt and order == "first":
        return f"{case.name}({case.text}) of {case.dtype} passes: it needs no exemption"
    COUNTS[order, "passed"] += 1
    return ""


@pytest.mark.parametrize("order", ["first", "second"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_gradients(dtype, family, order):
    failures = [failure(case, order) for case in cases(dtype, family)]
    assert not any(failures), "\n".join(filter(None, failures))


def test_every_exemption_is_needed():
    for order, names in EXEMPT.items():
        for name, *words in names:
            mine = [
                case
                for case in everything()
                if case.name == name and all(w in case.text or w == case.dtype for w in words)
            ]
            assert mine, f"{name} has no case"
            assert not all(passes(case, order) for case in mine), f"{name} needs no exemption"


def passes(case, order):
    try:
        return CHECKS[order](case, case.inputs)
    except Exception:
        return False


def test_every_public_operator_is_reached():
    reached = {case.name for family in FAMILIES for case in cases("float64", family)}
    sampled_names = {op["name"] for op in torch._C.all_ops() if op["samples"]}
    reasons = {name for names in UNREACHED.values() for name in names.split()}
    assert not reasons & reached
    for op in torch._C.all_ops():
        name = op["name"]
        if not name.startswith("_") and name not in sampled_names | reasons:
            assert name in reached, name


def test_counts(capsys):
    """Last: says how much was checked."""
    if COUNTS["second", "passed"] == 0 or COUNTS["first", "passed"] == 0:
        pytest.skip("the other tests did not run")
    operators = {case.name for case in everything()}
    with capsys.disabled():
        print(
            f"\n{len(operators)} operators: gradcheck of {COUNTS['first', 'passed']} calls, "
            f"gradgradcheck of {COUNTS['second', 'passed']} "
            f"and {COUNTS['second', 'constant']} whose gradient is zero everywhere; exempt "
            f"{len(EXEMPT['first'])} and {len(EXEMPT['second'])} operators"
        )
    assert len(operators) >= 450
    assert COUNTS["first", "passed"] >= 1900 and COUNTS["second", "passed"] >= 1850
