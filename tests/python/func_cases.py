"""Transforms of functions, for the test and its recorder: python3 func_cases.py data/func.json.

Run the recorder with PyTorch (torch.func, or functorch of the versions before it).
"""


def inputs(torch):
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(3, generator=generator).double() for _ in range(3)]


def plain(value):
    """Tensors as lists, whatever they stand in."""
    if hasattr(value, "tolist"):
        return value.detach().tolist()
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value


def cases(torch, func):
    a, b, c = inputs(torch)
    af = torch.autograd.functional

    def scalar(x, y):
        return (x.sin() * y.exp()).sum() + (x * x * y).prod()

    def vector(x, y):
        return torch.stack([(x * y).sum(), x.prod(), (y**3).sum(), (x / (y * y + 1)).sum()])

    def several(x, y):
        return x * y, (x.outer(y)).tanh()

    def partly(x, y):  # its second output does not depend on y
        return (x * y).sum(), x * x

    def with_aux(x, y):
        return scalar(x, y), {"doubled": 2 * x}

    def of_tree(tree):
        return (tree["w"] * tree["more"][0] ** 2).sum()

    one = torch.tensor(1.5, dtype=torch.float64)
    batch = torch.stack([a, b, c, a + b])
    yield "grad", lambda: func.grad(scalar)(a, b)
    yield "grad of the second", lambda: func.grad(scalar, argnums=1)(a, b)
    yield "grad of the last", lambda: func.grad(scalar, argnums=-1)(a, b)
    yield "grad of both", lambda: func.grad(scalar, argnums=(1, 0))(a, b)
    yield "grad with aux", lambda: func.grad(with_aux, has_aux=True)(a, b)
    yield "grad_and_value", lambda: func.grad_and_value(scalar)(a, b)
    yield "grad_and_value aux", lambda: func.grad_and_value(with_aux, has_aux=True)(a, b)
    yield "grad of a tree", lambda: func.grad(of_tree)({"w": a, "more": [b]})
    yield "third derivative", lambda: func.grad(func.grad(func.grad(lambda x: x**5 / 7)))(one)
    yield (
        "grad in grad",
        lambda: func.grad(lambda x: func.grad(lambda y: (x * y * y).sum())(b).sin().sum())(a),
    )
    yield "vjp", lambda: func.vjp(several, a, b)[1]((c, torch.outer(b, c)))
    yield "vjp of one", lambda: func.vjp(lambda x: x.cumsum(0), a)[1](c)
    yield "jvp", lambda: func.jvp(several, (a, b), (c, a))
    yield "jvp partly", lambda: func.jvp(partly, (a, b), (c, a))
    yield "jvp of a constant", lambda: func.jvp(lambda x: x.detach() * 0 + 2, (a,), (c,))
    yield "jvp of grad", lambda: func.jvp(func.grad(lambda x: (x**4).sum()), (a,), (c,))
    yield "jacrev", lambda: func.jacrev(vector)(a, b)
    yield "jacrev of both", lambda: func.jacrev(several, argnums=(0, 1))(a, b)
    yield "jacfwd", lambda: func.jacfwd(vector, argnums=1)(a, b)
    yield "jacfwd of both", lambda: func.jacfwd(several, argnums=(0, 1))(a, b)
    yield "jacfwd of jacfwd", lambda: func.jacfwd(func.jacfwd(vector))(a, b)
    yield "jacrev of jacrev", lambda: func.jacrev(func.jacrev(vector), argnums=1)(a, b)
    yield "hessian", lambda: func.hessian(scalar)(a, b)
    yield "hessian of both", lambda: func.hessian(scalar, argnums=(0, 1))(a, b)
    yield "vmap", lambda: func.vmap(torch.dot)(batch, batch * 2)
    yield "vmap with None", lambda: func.vmap(torch.dot, in_dims=(0, None))(batch, b)
    yield "vmap over columns", lambda: func.vmap(lambda x: x.sum(), in_dims=1)(batch)
    yield "vmap out_dims", lambda: func.vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(batch)
    yield (
        "vmap of a tree",
        lambda: func.vmap(lambda t: t["x"] * t["y"], in_dims=({"x": 0, "y": 1},))(
            {"x": batch, "y": batch.t()}
        ),
    )
    yield (
        "vmap of vmap",
        lambda: func.vmap(func.vmap(lambda x, y: x * y), in_dims=(0, None))(batch, b),
    )
    yield "per sample gradients", lambda: func.vmap(func.grad(scalar), in_dims=(0, None))(batch, b)
    yield "batched jacobian", lambda: func.vmap(func.jacrev(vector), in_dims=(0, None))(batch, b)

    yield "af.jacobian", lambda: af.jacobian(vector, (a, b))
    yield "af.jacobian of several", lambda: af.jacobian(several, (a, b))
    yield "af.jacobian of one", lambda: af.jacobian(lambda x: x.outer(x), a)
    yield "af.jacobian partly", lambda: af.jacobian(partly, (a, b))
    yield "af.hessian", lambda: af.hessian(scalar, (a, b))
    yield "af.hessian of one", lambda: af.hessian(lambda x: (x**3).sum(), a)
    yield "af.vjp", lambda: af.vjp(several, (a, b), (c, torch.outer(b, c)))
    yield "af.vjp without v", lambda: af.vjp(scalar, (a, b))
    yield "af.jvp", lambda: af.jvp(several, (a, b), (c, a))
    yield "af.vhp", lambda: af.vhp(scalar, (a, b), (c, a))
    yield "af.hvp", lambda: af.hvp(scalar, (a, b), (c, a))
    yield "af.hvp of linear", lambda: af.hvp(lambda x: x.sum(), a, c)
    yield "af.vhp of linear", lambda: af.vhp(lambda x: x.sum(), a, c)


if __name__ == "__main__":
    import json
    import sys

    import torch

    try:
        from torch import func
    except ImportError:
        import functorch as func
    recorded = {name: plain(run()) for name, run in cases(torch, func)}
    with open(sys.argv[1], "w", encoding="ascii") as file:
        json.dump(recorded, file, indent=None, separators=(",", ":"))
        file.write("\n")
    print(len(recorded), "recorded")
