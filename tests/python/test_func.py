"""torch.func and torch.autograd.functional: PyTorch's values, and what graphs go out with them."""

import json
from pathlib import Path

import pytest
from func_cases import cases, inputs, plain

import tessera as torch
from tessera import func, nn
from tessera.autograd import functional as af

RECORDED = json.loads((Path(__file__).parent / "data" / "func.json").read_text())


def assert_near(got, want):
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        got, want = list(got.values()), list(want.values())
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            assert_near(g, w)
    else:
        assert got == pytest.approx(want, rel=1e-12, abs=1e-14)


def test_every_case_is_recorded():
    assert [name for name, _ in cases(torch, func)] == list(RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_values_are_pytorchs(name):
    assert_near(plain(dict(cases(torch, func))[name]()), RECORDED[name])


def test_results_have_a_graph_only_where_it_is_of_use():
    a, b, _ = inputs(torch)
    assert not func.grad(lambda x: (x * b).sum())(a).requires_grad
    assert not func.hessian(lambda x: (x**3).sum())(a).requires_grad
    assert not any(t.requires_grad for t in func.jvp(torch.sin, (a,), (b,)))
    out, pull_back = func.vjp(torch.sin, a)
    assert not out.requires_grad and not pull_back(b)[0].requires_grad
    assert a.grad is None and not a.requires_grad
    # A parameter that the function closes over, and an input that requires gradients.
    w = b.clone().requires_grad_()
    gradient = func.grad(lambda x: (x * x * w).sum())(a)
    gradient.sum().backward()
    assert torch.allclose(w.grad, 2 * a)
    x = a.clone().requires_grad_()
    func.grad(lambda x: (x**3).sum())(x).sum().backward()
    assert torch.allclose(x.grad, 6 * a)
    with torch.no_grad():
        assert torch.allclose(func.grad(lambda x: (x**3).sum())(a), 3 * a * a)


def test_no_grad_within_is_heeded():
    a, _, _ = inputs(torch)

    def half_detached(x):
        with torch.no_grad():
            constant = x.sum()
        return x.sum() * constant

    assert torch.allclose(func.grad(half_detached)(a), a.sum().expand(3))


def test_linearize():
    a, b, c = inputs(torch)

    def several(x, y):
        return {"product": x * y, "sine": x.sin()}

    out, derivative = func.linearize(several, a, b)
    assert torch.equal(out["sine"], a.sin())
    for tangents in ((c, a), (b, c)):
        want = func.jvp(several, (a, b), tangents)[1]
        assert_near(plain(derivative(*tangents)), plain(want))


def test_functional_call_and_ensembles():
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)) for _ in range(3)]
    x = torch.randn(5, 3)
    parameters, buffers = func.stack_module_state(models)
    assert parameters["0.weight"].shape == (3, 4, 3) and parameters["0.weight"].is_leaf

    def call(parameters, buffers, x):
        return func.functional_call(models[0], (parameters, buffers), (x,))

    got = func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    assert torch.allclose(got, torch.stack([model(x) for model in models]))

    def loss(parameters, x, y):
        return ((func.functional_call(models[0], parameters, x) - y) ** 2).mean()

    own = {name: p.detach() for name, p in models[0].named_parameters()}
    y = torch.randn(5, 1)
    gradients, value = func.grad_and_value(loss)(own, x, y)
    want = ((models[0](x) - y) ** 2).mean()
    want.backward()
    assert torch.allclose(value, want) and not value.requires_grad
    for name, p in models[0].named_parameters():
        assert torch.allclose(gradients[name], p.grad)
    per_sample = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(own, x, y)
    assert torch.allclose(per_sample["0.weight"].mean(0), gradients["0.weight"], atol=1e-6)
    with pytest.raises(ValueError, match="multiple dictionaries"):
        func.functional_call(models[0], (own, own), x)


def test_vmap_and_randomness():
    x = torch.zeros(6, 2)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        func.vmap(lambda v: v + torch.rand(2))(x)
    same = func.vmap(lambda v: v + torch.rand(2), randomness="same")(x)
    assert (same == same[0]).all()
    different = func.vmap(lambda v: v + torch.rand(2), randomness="different")(x)
    assert len({tuple(row) for row in different.tolist()}) == 6
    assert torch.vmap is func.vmap


def test_vmap_refuses():
    x = torch.ones(2, 3)
    with pytest.raises(ValueError, match="got no inputs"):
        func.vmap(torch.sin)()
    with pytest.raises(ValueError, match="same size in the mapped dimension"):
        func.vmap(torch.add)(x, torch.ones(3))
    with pytest.raises(ValueError, match="not compatible with the structure"):
        func.vmap(torch.sin, in_dims=(0, 0))(x)
    with pytest.raises(ValueError, match="dimensionality 2"):
        func.vmap(torch.sin, in_dims=2)(x)
    with pytest.raises(ValueError, match="must only return Tensors"):
        func.vmap(lambda v: 3)(x)
    with pytest.raises(ValueError, match="out_dims is not compatible"):
        func.vmap(lambda v: v, out_dims=(0, 0))(x)


def test_transforms_refuse():
    a, b, _ = inputs(torch)
    with pytest.raises(RuntimeError, match="scalar tensor, got tensor with 1 dims"):
        func.grad(torch.sin)(a)
    with pytest.raises(RuntimeError, match="to return a tensor, got"):
        func.grad(lambda x: 3.0)(a)
    with pytest.raises(RuntimeError, match="argnum=2, but only 1"):
        func.grad(torch.sum, argnums=2)(a)
    with pytest.raises(RuntimeError, match="must be unique"):
        func.grad(torch.dot, argnums=(0, 0))(a, b)
    with pytest.raises(RuntimeError, match="has_aux"):
        func.grad(torch.sum, has_aux=True)(a)
    with pytest.raises(RuntimeError, match="int64"):
        func.grad(torch.sum)(torch.ones(2, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="same python structure"):
        func.jvp(torch.sin, (a,), (a, b))
    with pytest.raises(RuntimeError, match="tuple"):
        func.jvp(torch.sin, a, b)
    with pytest.raises(RuntimeError, match="structure of cotangents"):
        func.vjp(torch.sin, a)[1]((a, b))


def test_functional_graphs():
    a, b, c = inputs(torch)
    x = a.clone().requires_grad_()
    jacobian = af.jacobian(lambda t: t**3, x, create_graph=True)
    jacobian.sum().backward()
    assert torch.allclose(x.grad, 6 * a)
    assert not af.jacobian(lambda t: t**3, x).requires_grad
    out, product = af.hvp(lambda t: (t**4).sum(), x, c, create_graph=True)
    assert out.requires_grad
    (second,) = torch.autograd.grad(product.sum(), x)
    assert torch.allclose(second, 24 * a * c)


def test_functional_refuses():
    a, b, _ = inputs(torch)
    with pytest.raises(TypeError, match="inputs given to jacobian must be either a Tensor"):
        af.jacobian(torch.sin, 3)
    with pytest.raises(TypeError, match="outputs of the user-provided function given to vjp"):
        af.vjp(lambda x: 3, a)
    with pytest.raises(RuntimeError, match="v can only be None"):
        af.vjp(torch.sin, a)
    with pytest.raises(RuntimeError, match="invalid size"):
        af.jvp(torch.sin, a, b[:2])
    with pytest.raises(RuntimeError, match="invalid length"):
        af.jvp(torch.mul, (a, b), (a,))
    with pytest.raises(RuntimeError, match="should contain a single"):
        af.hvp(torch.sin, a, b)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        af.vjp(lambda x: torch.ones(1), a, strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        af.jacobian(lambda x, y: x * 2, (a, b), strict=True)


def test_pytree():
    from collections import OrderedDict, namedtuple

    from tessera.utils import _pytree as pytree

    Pair = namedtuple("Pair", "first second")
    tree = {"a": [1, (2, 3)], "b": Pair(4, OrderedDict(x=None))}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, None] and spec.num_leaves == 5
    assert pytree.tree_unflatten(leaves, spec) == tree
    assert pytree.tree_structure(tree) == spec
    assert pytree.tree_map_only(int, lambda v: v + 1, tree)["b"] == Pair(5, OrderedDict(x=None))
    assert pytree.tree_map(lambda v, w: v + w, (1, [2]), (3, [4])) == (4, [6])
    assert pytree.tree_leaves(torch.max(torch.ones(2, 2), 0))[1].dtype == torch.int64
    with pytest.raises(ValueError):
        pytree.tree_map(lambda v, w: v, (1, [2]), (3, 4))
    with pytest.raises(ValueError):
        pytree.tree_unflatten([1], spec)


def test_batches_of_gradients():
    a, b, c = inputs(torch)
    x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
    out = (x * y).sin()
    rows = torch.stack([c, a, b, c * 2])
    got = torch.autograd.grad(out, (x, y), rows, is_grads_batched=True)
    assert torch.allclose(got[0], rows * (a * b).cos() * b)
    assert torch.allclose(got[1], rows * (a * b).cos() * a)
    with pytest.raises(ValueError, match="same size"):
        torch.autograd.grad((out, x * 2), x, (rows, rows[:2]), is_grads_batched=True)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions_as_functions(n):
    from tessera.nn import grad

    torch.manual_seed(n)
    x = torch.randn(2, 4, *[5] * n, dtype=torch.float64, requires_grad=True)
    w = torch.randn(6, 2, *[3] * n, dtype=torch.float64, requires_grad=True)
    y = getattr(nn.functional, f"conv{n}d")(x, w, stride=2, padding=1, groups=2)
    g = torch.randn_like(y)
    of_x, of_w = torch.autograd.grad(y, (x, w), g)
    options = dict(stride=2, padding=1, groups=2)
    assert torch.allclose(getattr(grad, f"conv{n}d_input")(x.shape, w, g, **options), of_x)
    assert torch.allclose(getattr(grad, f"conv{n}d_weight")(x, w.shape, g, **options), of_w)


def test_vmap_hands_keyword_arguments_on():
    out = func.vmap(lambda x, *, k: x + k.sum())(torch.arange(3.0), k=torch.ones(3))
    assert out.tolist() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobians_refuse_complex_numbers(name):
    transform = getattr(func, name)
    with pytest.raises(RuntimeError, match="all inputs to be real"):
        transform(lambda x: x * x)(torch.tensor([1j]))
    with pytest.raises(RuntimeError, match="all outputs to be real"):
        transform(lambda x: x * 1j)(torch.tensor([1.0]))


def test_under_no_grad_what_a_transform_returns_is_a_constant():
    w, x = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0)

    def f(x):
        return w * x * x

    assert func.grad(f)(x).requires_grad
    with torch.no_grad():
        gradient = func.grad(f)(x)
        assert gradient.item() == 12 and not gradient.requires_grad
        assert not any(t.requires_grad for t in func.jvp(f, (x,), (torch.tensor(1.0),)))
        value, pull_back = func.vjp(f, x)
        assert not value.requires_grad and not pull_back(torch.tensor(1.0))[0].requires_grad
        assert not func.jacrev(f)(x).requires_grad
        assert func.grad(func.grad(f))(x).item() == 4

    def with_constant(x):
        with torch.no_grad():
            slope = func.grad(lambda y: y * y)(x)
        return x * slope

    assert func.grad(with_constant)(x).item() == 6
