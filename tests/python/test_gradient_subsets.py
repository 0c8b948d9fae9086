"""Gradients of some of an operator's inputs equal those where all inputs require gradients.

First and second derivatives of every sample, for each proper subset of its inputs. The gradients
of all inputs together are compared with differences by test_gradcheck_all.py.
"""

import itertools

import pytest
from conftest import KIND
from test_gradcheck_all import DTYPES, FAMILIES, cases, is_exempt

import tessera as torch

pytestmark = pytest.mark.skipif(KIND != "cpu", reason="the formulas are the same everywhere")

MOST_INPUTS = 5  # of more inputs only single ones, and all but one, are tried


def subsets(count):
    every = [s for n in range(1, count) for s in itertools.combinations(range(count), n)]
    if count > MOST_INPUTS:
        every = [s for s in every if len(s) in (1, count - 1)]
    return every


def cotangents(outs):
    torch.manual_seed(11)
    return [
        torch.randn_like(out) if out.is_floating_point() or out.is_complex() else out
        for out in outs
    ]


def gradients(outs, wrt, given, **options):
    return torch.autograd.grad(outs, wrt, given, allow_unused=True, **options)


def derivatives(case, wanted, required, order, of_cotangents):
    """First and second derivatives by the inputs `wanted`, where `required` require gradients.

    With `of_cotangents` the second ones are by the cotangents too. None where there is none.
    """
    inputs = [t.detach().requires_grad_(i in required) for i, t in enumerate(case.inputs)]
    results = case(*inputs)
    kept = [i for i, out in enumerate(results) if out.requires_grad]
    if not kept:
        return kept, None, None
    given = cotangents(results)
    given = [given[i].requires_grad_(of_cotangents) for i in kept]
    wrt = [inputs[i] for i in wanted]
    first = gradients([results[i] for i in kept], wrt, given, create_graph=order == "second")
    parts = [g for g in first if g is not None and g.requires_grad]
    second = None
    if parts:
        by = [*wrt, *(given if of_cotangents else [])]
        second = gradients(parts, by, cotangents(parts))
    return kept, first, second


def difference(one, other):
    """Words for how two gradients differ; nothing where they agree. None stands for zero."""
    if one is None and other is None:
        return ""
    if one is None or other is None:
        present = other if one is None else one
        return "one is missing" if present.count_nonzero().item() else ""
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{one.dtype}{list(one.shape)} and {other.dtype}{list(other.shape)}"
    close = torch.isclose(one, other, rtol=1e-8, atol=1e-9, equal_nan=True)
    return "" if close.all().item() else f"{one.tolist()} and {other.tolist()}"


def failures(case, order):
    everything = range(len(case.inputs))
    for wanted in subsets(len(case.inputs)):
        for of_cotangents in (False, True) if order == "second" else (False,):
            try:
                kept, *alone = derivatives(case, wanted, wanted, order, of_cotangents)
                all_kept, *together = derivatives(case, wanted, everything, order, of_cotangents)
            except (NotImplementedError, RuntimeError) as error:
                if is_exempt(case, order):
                    continue
                yield f"{wanted}: {type(error).__name__}: {error}"
                continue
            if kept != all_kept:
                continue  # a result that depends on the other inputs alone: other cotangents
            which = 0 if order == "first" else 1
            one, other = alone[which] or (), together[which] or ()
            if len(one) != len(other):
                one = one or (None,) * len(other)
                other = other or (None,) * len(one)
            for position, (a, b) in enumerate(zip(one, other)):
                if words := difference(a, b):
                    yield f"inputs {wanted}, gradient {position}: {words}"


@pytest.mark.parametrize("order", ["first", "second"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_subsets(dtype, family, order):
    found = []
    for case in cases(dtype, family):
        if len(case.inputs) < 2 or (order == "second" and is_exempt(case, "second")):
            continue
        found += [f"{case.name}({case.text}): {words}" for words in failures(case, order)]
    assert not found, "\n".join(found)
