"""gradcheck and gradgradcheck: gradients held to differences."""

import itertools

from .. import _C

Tensor = _C.Tensor


class GradcheckError(RuntimeError):
    """A gradient that does not match."""


def _tensors(x):
    if isinstance(x, Tensor):
        return [x]
    return [t for t in x if isinstance(t, Tensor)] if isinstance(x, (tuple, list)) else []


def _differentiable(x):
    return [t for t in _tensors(x) if t.requires_grad]


def _parts(t):
    """A tensor as reals: a complex one as pairs."""
    t = t.detach()
    return _C.ops["view_as_real"](t) if t.is_complex() else t


def _flat(t):
    return _parts(t).reshape(-1).tolist()


def _outputs(function, inputs):
    return [o for o in _tensors(function(*inputs)) if o.is_floating_point() or o.is_complex()]


def _numeric(function, inputs, target, eps):
    """For each output the slopes along each real part of `target`: [output][part][element]."""
    # The inputs themselves are changed, so that a function sees it that holds them otherwise: the
    # parameters of a module. Through .data, which leaves their versions as they are.
    reals = _parts(target.data)
    columns = []
    for place in itertools.product(*map(range, reals.shape)):
        at = reals[place]
        before = at.clone()
        ends = []
        for step in (eps, -eps):
            at.copy_(before + step)
            try:
                ends.append([_flat(o) for o in _outputs(function, inputs)])
            finally:
                at.copy_(before)
        columns.append(
            [[(a - b) / (2 * eps) for a, b in zip(x, y)] for x, y in zip(ends[0], ends[1])]
        )
    return columns


def _analytic(outputs, target, which):
    """Gradients of each real part of output `which`: a row of real parts of `target` each."""
    import tessera as torch

    out = outputs[which]
    rows = []
    reals = _parts(out)
    for i in range(reals.numel()):
        seed = torch.zeros(reals.numel(), dtype=reals.dtype, device=reals.device)
        seed[i : i + 1].add_(1)
        seed = seed.reshape(reals.shape)
        if out.is_complex():
            seed = _C.ops["view_as_complex"](seed)
        (g,) = torch.autograd.grad(out, [target], seed, retain_graph=True, allow_unused=True)
        rows.append([0.0] * _parts(target).numel() if g is None else _flat(g))
    return rows


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Are the gradients of func(*inputs) those of small differences? In double precision."""
    try:
        return _check(func, inputs, eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False


def _check(func, inputs, eps, atol, rtol, nondet_tol):
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    wanted = _differentiable(inputs)
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, "
            "but none of the them have requires_grad=True."
        )
    for t in wanted:
        if t.dtype not in (_C.dtypes["float64"], _C.dtypes["complex128"]):
            import warnings

            warnings.warn(
                f"Input of {t.dtype} requires gradient and is not a double precision floating "
                "point or complex. This check will likely fail if all the inputs are not of "
                "double precision floating point or complex."
            )
        if any(step == 0 and n > 1 for step, n in zip(t.stride(), t.shape)):
            raise RuntimeError(
                f"The {[t is x for x in inputs].index(True)}th input has a dimension with stride "
                "0. gradcheck only supports inputs that are non-overlapping to be able to compute "
                "the numerical gradients correctly. You should call .contiguous on the input "
                "before passing it to gradcheck."
            )
    outputs = _outputs(func, inputs)
    if not any(o.requires_grad for o in outputs):
        raise ValueError("gradcheck expects at least one output to require gradient")
    for number, target in enumerate(wanted):
        slopes = _numeric(func, inputs, target, eps)
        for which, out in enumerate(outputs):
            if not out.requires_grad:
                continue
            rows = _analytic(outputs, target, which)
            again = _analytic(outputs, target, which)
            for i, row in enumerate(rows):
                for j, value in enumerate(row):
                    expected = slopes[j][which][i]
                    if abs(value - expected) > atol + rtol * abs(expected) or value != value:
                        raise GradcheckError(
                            f"Jacobian mismatch for output {which} with respect to input {number},"
                            f"\nnumerical:{expected}\nanalytical:{value}\n"
                            f"at element {i} of the output and {j} of the input"
                        )
                    if abs(value - again[i][j]) > nondet_tol:
                        raise GradcheckError(
                            "Backward is not reentrant, i.e., running backward with same input "
                            "and grad_output multiple times gives different values, although "
                            "analytical gradient matches numerical gradient. The tolerance was "
                            f"{nondet_tol}."
                        )
    return True


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """gradcheck of the gradients themselves."""
    import tessera as torch

    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if grad_outputs is None:
        outs = [o for o in _outputs(func, inputs) if o.requires_grad]
        grad_outputs = tuple(torch.randn_like(o).requires_grad_(True) for o in outs)
    elif isinstance(grad_outputs, Tensor):
        grad_outputs = (grad_outputs,)
    count = len(grad_outputs)
    places = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]

    def gradients(*args):
        given, grads = list(args[:-count]), args[-count:]
        for i in places:
            if not given[i].requires_grad:
                given[i] = given[i].detach().requires_grad_(True)
        outs = [o for o in _outputs(func, given) if o.requires_grad]
        found = torch.autograd.grad(
            outs, [given[i] for i in places], grads, create_graph=True, allow_unused=True
        )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        inputs + tuple(grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
    )
