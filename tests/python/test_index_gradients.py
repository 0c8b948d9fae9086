"""Second derivatives of indexing's operators, and those of their in-place forms."""

import pytest
from samples import Arguments, flat, tensors_in, weights

import tessera as torch

OPS = [
    (op, sample)
    for op in torch._C.all_ops()
    if op["family"] in ("index", "embedding") and op["differentiable"]
    for sample in op["samples"]
    if Arguments(torch, sample, "float64").tensors
]
STEP = 2.0**-15


def name_of(param):
    return f"{param[0]['name']}({param[1]})"


def loss_of(op, given):
    """Squares, so that there are second derivatives; None where no result has a gradient."""
    function = torch._C.ops[op["paths"][0]]
    outs = [t for t in tensors_in(function(*given.args, **given.kwargs)) if t.requires_grad]
    return sum((t * t * weights(torch, t).to(t.dtype)).sum() for t in outs) if outs else None


def gradients(op, given, create_graph):
    loss = loss_of(op, given)
    if loss is None:
        return None
    wanted = [t for t in given.tensors if t.requires_grad]
    return torch.autograd.grad(loss, wanted, create_graph=create_graph, allow_unused=True)


def weighted(grads):
    total = 0.0
    for k, g in enumerate(grads):
        if g is not None:
            total = total + (g * weights(torch, g).to(g.dtype)).sum() * (k + 1)
    return total


@pytest.mark.parametrize("param", OPS, ids=name_of)
def test_second_derivatives_are_those_of_differences(param):
    op, sample = param
    given = Arguments(torch, sample, "float64", requires_grad=True)
    grads = gradients(op, given, True)
    if grads is None:
        pytest.skip("nothing to differentiate")
    wanted = [t for t in given.tensors if t.requires_grad]
    second = torch.autograd.grad(weighted(grads), wanted, allow_unused=True)
    for t, h in zip(wanted, second):
        which = next(i for i, other in enumerate(given.tensors) if other is t)
        for i in range(t.numel()):
            ends = []
            for offset in (STEP, -STEP):
                moved = Arguments(torch, sample, "float64", requires_grad=True)
                with torch.no_grad():
                    moved.tensors[which].view(-1)[i : i + 1].add_(offset)
                ends.append(float(weighted(gradients(op, moved, False))))
            slope = (ends[0] - ends[1]) / (2 * STEP)
            found = 0.0 if h is None else flat(h)[i]
            assert abs(found - slope) <= 1e-5 * (1 + abs(slope)), (which, i, found, slope)


def written(op, given, form):
    """The result of one form of an operator, the in-place ones on a copy and through a view."""
    self, *rest = given.args
    if form == "function":
        return torch._C.ops[op["name"]](self, *rest, **given.kwargs)
    copy = torch.zeros((2, *self.shape), dtype=torch.float64)
    copy[1] = self * 1.0
    target = copy[1] if form == "view" else self * 1.0
    getattr(target, op["name"] + "_")(*rest, **given.kwargs)
    return copy[1] if form == "view" else target


@pytest.mark.parametrize("param", [p for p in OPS if "inplace" in p[0]["forms"]], ids=name_of)
def test_writing_in_place_has_the_same_gradients(param):
    op, sample = param
    results = []
    for form in ("function", "in place", "view"):
        given = Arguments(torch, sample, "float64", requires_grad=True)
        out = written(op, given, "function") if form == "function" else None
        if out is not None and out.shape != given.args[0].shape:
            pytest.skip("the result is larger than self")
        out = written(op, given, form) if out is None else out
        (out * out * weights(torch, out).to(out.dtype)).sum().backward()
        results.append([flat(out), *(t.grad is not None and flat(t.grad) for t in given.tensors)])
    assert results[0] == results[1] == results[2]
