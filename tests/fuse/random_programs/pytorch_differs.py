"""Where PyTorch's answer is another one than Tessera's, for a reason that is known."""

import re

import numpy

REDUCED = ("float16", "bfloat16")
COMPLEX = ("complex64", "complex128")


def extreme(operands):
    """Elements that are not finite, or beyond 1e15 or below 1e-15."""
    found = numpy.array(not operands)
    for o in operands:
        found = found | ~((abs(o) < 1e15) & ((abs(o) > 1e-15) | (o == 0)))
    return found


def huge(operands):
    """Is any of them so large that its square overflows?"""
    return numpy.array(not operands or any((~(abs(o) < 1e18)).any() for o in operands))


def near(theirs, ours, operands):
    """As near as what was subtracted on the way allows."""
    size = max([abs(o[numpy.isfinite(o)]).max(initial=1.0) for o in operands], default=1.0)
    return abs(theirs - ours) <= 1e-2 * size * abs(ours).clip(1e-3)


# Operators; which elements (theirs, ours, the operands' elements there, the dtype, or "index" for
# indices); why.
KNOWN = [
    (
        r"(special\.)?(i0|i1|i0e|i1e|bessel|modified_bessel|scaled_modified|spherical|airy|zeta|igamma"
        r"|igammac|polygamma|chebyshev|shifted|laguerre|legendre|hermite|ndtr|log_ndtr|erfcx).*",
        lambda t, o, ops, kind: extreme(ops) | numpy.isnan(t),
        "special functions at infinities, NaN and numbers near them",
    ),
    (
        r"special\.(bessel|airy).*",
        lambda t, o, ops, kind: (abs(t - o) <= 1e-5) | (abs(ops[0]) > 50),
        "PyTorch's Bessel functions are right to 1e-6 where they oscillate",
    ),
    (
        r"special\.ndtr",
        lambda t, o, ops, kind: abs(t - o) <= 4e-3,
        "PyTorch subtracts from 1 what is nearly 1",
    ),
    (
        r"(special\.)?(igamma|igammac|gammainc|gammaincc)_?",
        lambda t, o, ops, kind: abs(t - o) <= 1e-6,
        "PyTorch's are right to 1e-7, and 1 - p where p is nearly 1",
    ),
    (
        r"(special\.)?(erf_?|digamma_?|lgamma_?|logit_?|logaddexp2)|nn\.functional\.gelu",
        lambda t, o, ops, kind: near(t, o, ops) | (numpy.isnan(t) & extreme(ops)),
        "PyTorch rounds on the way, or subtracts what is nearly the same",
    ),
    (
        r"(nan)?median|mode|(arg)?sort|msort|topk|kthvalue|max|min|aminmax|cummax|cummin",
        lambda t, o, ops, kind: numpy.array(kind == "index"),
        "which of equal elements is not said",
    ),
    (
        r"any|all",
        lambda t, o, ops, kind: numpy.array(kind == "uint8") & extreme(ops),
        "PyTorch converts to uint8 before it looks",
    ),
    (
        r"add_?|sub_?",
        lambda t, o, ops, kind: numpy.array(kind == "bool"),
        "PyTorch takes a number beside booleans as one of them",
    ),
    (
        r"cumsum|cumprod",
        lambda t, o, ops, kind: (
            numpy.array(kind.startswith(("int", "uint"))) & numpy.any([extreme(ops).any()])
        ),
        "floats that no integer is, and sums of them",
    ),
    (
        r"topk",
        lambda t, o, ops, kind: numpy.array(True),
        "the order of what is not sorted",
    ),
    (
        r"clamp.*",
        lambda t, o, ops, kind: numpy.isnan(o),
        "a bound that is NaN, of one element",
    ),
    (
        r"nn\.functional\.hardswish",
        lambda t, o, ops, kind: abs(t - o) <= 1e-7 * abs(o),
        "PyTorch divides by a rounded 6",
    ),
    (
        r"backward",
        lambda t, o, ops, kind: ~numpy.isfinite(ops[0]) | ~numpy.isfinite(t),
        "gradients at infinities and NaN",
    ),
    (
        r".*",
        lambda t, o, ops, kind: numpy.array(kind in COMPLEX) & huge(ops),
        "complex numbers with a huge or infinite part: PyTorch multiplies by alpha, 1 + 0j, too",
    ),
    (
        r"fmod_?|remainder_?|floor_divide_?|div_?",
        lambda t, o, ops, kind: numpy.array(kind.startswith(("int", "uint"))) & (ops[-1] == 0),
        "what an integer is divided by 0",
    ),
    (
        r"mode",
        lambda t, o, ops, kind: numpy.array(any(numpy.isnan(p).any() for p in ops)),
        "PyTorch counts no NaN as equal to another",
    ),
    (
        r"add_?|sub_?|rsub|mul_?|div_?|addcmul_?|addcdiv_?|hypot_?|lerp_?|where|xlogy_?|special\.xlog1py",
        lambda t, o, ops, kind: numpy.array(kind in REDUCED) & ~numpy.isfinite(t),
        "PyTorch rounds a number, or a tensor of one element, to 16 bits first",
    ),
    (
        r"floor_divide_?",
        lambda t, o, ops, kind: numpy.array(kind in REDUCED) & (abs(t - o) <= 1),
        "PyTorch rounds a number to 16 bits before it divides it",
    ),
    (
        r"(var|std)(_mean)?|masked\.(var|std|norm|prod|mean)|prod|norm|nn\.functional\.\w+_norm|mean"
        r"|addcmul_?|addcdiv_?|logcumsumexp|renorm_?|sum|cumprod_?|add_?|sub_?|rsub|lerp_?",
        lambda t, o, ops, kind: huge(ops) & (~numpy.isfinite(o) | ~numpy.isfinite(t)),
        "what overflows on the way, in one of both",
    ),
    (
        r"copy_|to|masked\.(amax|amin).*|cumprod|cumsum|sum|prod|clamp.*|floor_divide_?|div_?|.*_like|index_.*|fill_|type_as",
        lambda t, o, ops, kind: (
            numpy.array(kind.startswith(("int", "uint"))) & (extreme(ops) | (t == -(2.0**31)))
        ),
        "floats that no integer is",
    ),
    (
        r"fmod_?|remainder_?|floor_divide_?|div_?",
        lambda t, o, ops, kind: numpy.isnan(t),
        "PyTorch gives NaN where the quotient is too large",
    ),
    (
        r"gcd_?",
        lambda t, o, ops, kind: abs(t) == abs(o),
        "the sign of what divides the least integer",
    ),
]

# What Tessera refuses and PyTorch does, without saying what comes out, or by leaving a check out.
REFUSED = (
    "more than one element of the written-to tensor",
    "a leaf Variable that requires grad",
    "don't support automatic differentiation",
    "outside the representable range",
    "complex numbers have no order",
    "can't be cast to the desired output type",
    "without overflow",
    "a view was used after its base had been transposed or resized in place",
)


def reasons_for(op, theirs, ours, operands, kind):
    """Pairs: the elements, and why."""
    with numpy.errstate(all="ignore"):
        return [
            (where(theirs, ours, operands, kind), why)
            for names, where, why in KNOWN
            if re.fullmatch(names, op)
        ]
