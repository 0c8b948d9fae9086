"""Every record's samples, in all forms, layouts and dtypes.

Values are held to PyTorch's recorded answers; where there are none, to the record's `reference`.
Gradients are held to recorded ones and to central differences."""

import json
import math
from pathlib import Path

import pytest
from samples import DTYPES, LAYOUTS, Arguments, case, flat, reference, tensors_in, weights

import tessera as torch

ORACLE = {}
for answers in sorted((Path(__file__).parent / "data" / "oracle").glob("*.json")):
    ORACLE.update(json.loads(answers.read_text()))
CONFORMANCE = set((Path(__file__).parent / "data" / "conformance_names.txt").read_text().split())
OPS = [op for op in torch._C.all_ops() if op["samples"]]
CASES = [(op, sample) for op in OPS for sample in op["samples"]]
# Those that have no answer of PyTorch's.
REFERENCED = [c for c in CASES if c[0]["reference"] and case(*c, "float32") not in ORACLE]
TOLERANCE = {
    "float64": (1e-8, 1e-8),
    "float32": (1e-5, 2e-6),
    "float16": (2e-3, 1e-3),
    "bfloat16": (1.6e-2, 1e-2),
}
# cuDNN's tanh and sigmoid are approximations.
CUDNN_FLOAT32 = (2e-4, 2e-5)
CUDNN = ("rnn_tanh", "rnn_relu", "lstm", "gru")


@pytest.fixture(autouse=True)
def whole_floats():
    """Answers are compared: cuDNN's networks would round to TF32, as PyTorch's do."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


def name_of(param):
    return f"{param[0]['name']}({param[1]})"


def function_of(op):
    if op["paths"][0] in torch._C.ops:
        return torch._C.ops[op["paths"][0]]
    return getattr(torch.Tensor, op["name"])


def close(actual, expected, dtype, is_sum=False, tolerance=None):
    """`is_sum`: of terms that were rounded before, so the largest ones count."""
    rtol, atol = tolerance or TOLERANCE.get(dtype, (0, 0))
    if is_sum:
        atol += rtol * max(filter(math.isfinite, map(abs, expected)), default=0)
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        near = abs(b) < math.inf and abs(a - b) <= atol + rtol * abs(b)
        assert a == b or near or (a != a and b != b), (a, b)


def same(a, b):
    """Bit for bit, as far as values tell; nan equals nan."""
    if not hasattr(a, "dim"):
        a, b = tensors_in(a), tensors_in(b)
        assert len(a) == len(b)
        for one, other in zip(a, b):
            same(one, other)
        return
    assert a.dtype == b.dtype and a.shape == b.shape
    assert repr(flat(a)) == repr(flat(b))


def runs(op, sample, dtype, device, layout="contiguous", **options):
    """The result of the function form, or None where the dtype is refused."""
    given = Arguments(torch, sample, dtype, device, layout, **options)
    try:
        return given, function_of(op)(*given.args, **given.kwargs)
    except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
        return given, None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("param", CASES, ids=name_of)
def test_answers_are_pytorchs(param, dtype, device):
    op, sample = param
    expected = ORACLE.get(case(op, sample, dtype))
    if expected is None:
        pytest.skip("PyTorch refuses this dtype, or has no answer recorded")
    given = Arguments(torch, sample, dtype, device, requires_grad=True)
    out = function_of(op)(*given.args, **given.kwargs)
    outs = tensors_in(out)
    assert [str(t.dtype) for t in outs] == ["torch." + name for name in expected["dtypes"]]
    assert [list(t.shape) for t in outs] == expected["shapes"]
    by_cudnn = device == "cuda" and op["name"] in CUDNN and dtype == "float32"
    tolerance = CUDNN_FLOAT32 if by_cudnn else None
    for t, values, name in zip(outs, expected["values"], expected["dtypes"]):
        close(flat(t), values, name, tolerance=tolerance)
    if not expected["grads"]:
        return
    loss = [(t.float() * weights(torch, t).to(device)).sum() for t in outs if t.requires_grad]
    torch.autograd.backward(loss)
    for t, wanted in zip(given.tensors, expected["grads"]):
        assert (t.grad is None) == (wanted is None)
        if wanted is not None:
            of = dtype if dtype in TOLERANCE else str(t.grad.dtype).removeprefix("torch.")
            close(flat(t.grad), wanted, of, is_sum=True, tolerance=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("param", REFERENCED, ids=name_of)
def test_answers_are_the_references(param, dtype, device):
    op, sample = param
    given, out = runs(op, sample, dtype, device)
    if out is None:
        assert dtype not in TOLERANCE
        pytest.skip("this dtype is refused")
    values, shape = reference(op, given)
    assert list(out.shape) == shape
    close(flat(out), values, str(out.dtype).removeprefix("torch."))


def loss_of(op, given):
    """The sum of all results that have gradients, weighted; None where there is none."""
    total = None
    for out in tensors_in(function_of(op)(*given.args, **given.kwargs)):
        if out.is_complex():
            out = torch.view_as_real(out)
        if not out.is_floating_point():
            continue
        one = (out * weights(torch, out).to(out.device, out.dtype)).sum()
        total = one if total is None else total + one
    return total


def difference(op, sample, dtype, device, which, i, step):
    """How fast the loss grows as element i of a tensor moves by a step."""
    ends = []
    for offset in (step, -step):
        moved = Arguments(torch, sample, dtype, device)
        moved.tensors[which].view(-1)[i : i + 1].add_(offset)
        ends.append(loss_of(op, moved).item())
    return (ends[0] - ends[1]) / (2 * abs(step))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("param", CASES, ids=name_of)
def test_gradients_are_those_of_differences(param, dtype, device):
    """In 64 bits, where a central difference with this step is good to about ten digits. Of a
    complex number the two slopes are the parts of its gradient."""
    op, sample = param
    if op["random"]:
        pytest.skip("random")
    if dtype == "complex128" and device != "cpu":
        pytest.skip("formulas are the same, and kernels that lack the dtype say so late")
    given = Arguments(torch, sample, dtype, device, requires_grad=True)
    try:
        loss = loss_of(op, given)
    except (RuntimeError, TypeError):
        assert dtype == "complex128"
        pytest.skip("not of complex numbers")
    if loss is None or not loss.requires_grad:
        assert not op["differentiable"] or not given.tensors
        pytest.skip("nothing to differentiate")
    try:
        loss.backward()
    except NotImplementedError as refused:
        known = ("the derivative ", "derivative for ", "The function 'nll_loss' is not diff")
        assert dtype == "complex128" or str(refused).startswith(known)
        pytest.skip("not of complex numbers, or has none in PyTorch either")
    step = 2.0**-17
    for which, t in enumerate(given.tensors):
        if not t.requires_grad:
            continue
        # A gradient that was not formed stands for zero, and must be zero.
        for i, slope in enumerate(flat(t.grad if t.grad is not None else torch.zeros_like(t))):
            expected = difference(op, sample, dtype, device, which, i, step)
            if t.is_complex():
                expected += 1j * difference(op, sample, dtype, device, which, i, step * 1j)
            assert abs(slope - expected) <= 1e-7 * (1 + abs(expected)), (slope, expected)


@pytest.mark.parametrize("layout", [x for x in LAYOUTS if x != "contiguous"])
@pytest.mark.parametrize("param", CASES, ids=name_of)
def test_layouts_do_not_matter(param, layout, device):
    op, sample = param
    if op["random"]:
        pytest.skip("random")
    given, out = runs(op, sample, "float32", device, layout)
    if not given.applies:
        pytest.skip("no tensor of the sample can be laid out so")
    if out is None and op["name"] in ("view", "view_as", "view_as_complex"):
        pytest.skip("a view of this layout cannot be")
    if out is None and layout == "expanded" and op["family"] == "linalg":
        pytest.skip("a matrix of equal rows is singular")
    assert out is not None
    copies = Arguments(torch, sample, "float32", device, layout)
    mapping = {id(t): t.contiguous().clone() for t in copies.tensors}
    args = [mapping.get(id(a), a) for a in copies.args]
    expected = function_of(op)(*args, **copies.kwargs)
    if isinstance(out, bool):
        assert out == expected
    elif op["kind"] in ("pointwise", "view"):
        same(out, expected)
    else:
        outs, others = tensors_in(out), tensors_in(expected)
        assert len(outs) == len(others) > 0
        for one, other in zip(outs, others):
            assert one.dtype == other.dtype and one.shape == other.shape
            close(flat(one), flat(other), "float32")


@pytest.mark.parametrize("param", CASES, ids=name_of)
def test_forms_agree(param, device):
    op, sample = param
    if op["random"]:
        pytest.skip("random")
    given, expected = runs(op, sample, "float32", device)
    assert expected is not None
    if {"function", "method"} <= set(op["forms"]) and given.tensors:
        first, *rest = given.args
        # Of an operator that Python has in a module, the method goes by its alias.
        name = next((p for p in op["paths"] if "." not in p), op["name"])
        same(getattr(first, name)(*rest, **given.kwargs), expected)
    if "out" in op["forms"]:
        made = [torch.empty(0, dtype=t.dtype, device=device) for t in tensors_in(expected)]
        out = made[0] if op["single"] else tuple(made)
        result = function_of(op)(*given.args, **given.kwargs, out=out)
        assert result is out if op["single"] else all(a is b for a, b in zip(result, made))
        same(out, expected)
    fits = op["single"] and given.tensors and given.args[0] is given.tensors[0]
    if "inplace" in op["forms"] and fits and expected.shape == given.args[0].shape:
        if expected.dtype != given.args[0].dtype:
            return  # not to be written into it
        fresh = Arguments(torch, sample, "float32", device)
        first, *rest = fresh.args
        before = first._version
        if "method" in op["forms"]:
            assert getattr(first, op["name"] + "_")(*rest, **fresh.kwargs) is first
        else:
            function = torch._C.ops[op["paths"][0] + "_"]
            assert function(first, *rest, **fresh.kwargs) is first
        assert first._version > before
        same(first, expected)


@pytest.mark.parametrize("param", CASES, ids=name_of)
def test_views_share_and_others_do_not(param, device):
    op, sample = param
    given, out = runs(op, sample, "float32", device)
    if not given.tensors or out is None or op["name"].startswith("_"):
        return
    outs = tensors_in(out)
    shares = [t._is_same_storage(given.tensors[0]) for t in outs]
    if op["kind"] == "view":
        assert all(shares)
    elif op["kind"] in ("pointwise", "reduction"):
        assert not any(shares)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op["name"])
def test_random_operators_repeat_with_the_seed(op, device):
    if not op["random"] or "empty" in op["name"]:
        pytest.skip("not random")
    for sample in op["samples"]:
        torch.manual_seed(3)
        _, first = runs(op, sample, "float32", device)
        assert first is not None
        torch.manual_seed(3)
        _, second = runs(op, sample, "float32", device)
        same(first, second)


@pytest.mark.parametrize("op", torch._C.all_ops(), ids=lambda op: op["name"])
def test_examples_run(op):
    if not op["example"]:
        pytest.skip("no example")
    eval(op["example"], {"torch": torch})


def test_every_sample_has_an_answer():
    """PyTorch's, recorded by record_oracle.py, or the record's own reference. Operators that
    PyTorch's own samples cover (tests/conformance) need none of these."""
    for op, sample in CASES:
        if not op["random"] and not CONFORMANCE.intersection(op["paths"]):
            assert case(op, sample, "float32") in ORACLE or op["reference"], name_of((op, sample))


def test_every_public_operator_has_samples():
    """Its record's, or PyTorch's own in tests/conformance; views of places in memory have tests of
    their own, and questions need none."""
    sampled = {op["name"] for op in OPS}
    # Random choices, tested in test_linalg.py; a part of group_norm, which has samples.
    sampled |= {"svd_lowrank", "pca_lowrank", "lobpcg", "native_group_norm"}
    for op in torch._C.all_ops():
        name = op["name"]
        exempt = name.startswith(("_", "as_strided")) or "bool" in op["schema"].split("->")[1]
        if name not in sampled and not exempt and not name.endswith("_"):
            assert CONFORMANCE.intersection(op["paths"]), name


def test_dropout(device):
    torch.manual_seed(0)
    x = torch.ones(100, 100, device=device, requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    values = flat(y)
    kept = sum(v != 0 for v in values)
    assert 7000 < kept < 8000 and all(v == 0 or abs(v - 4 / 3) < 1e-6 for v in values)
    y.sum().backward()
    assert flat(x.grad) == values
    assert torch.nn.functional.dropout(x, 0.25, training=False) is x
    assert not any(flat(torch.nn.functional.dropout(x, 1.0)))


def test_every_public_record_is_documented():
    """Overloads share the words of the first one."""
    documented = {op["name"] for op in torch._C.all_ops() if op["doc"]}
    for op in torch._C.all_ops():
        assert op["name"].startswith("_") or op["name"] in documented, op["name"]
