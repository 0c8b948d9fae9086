"""Gradients of another dtype, device or shape than the result they belong to."""

import pytest

import tessera as torch
import tessera.nn.functional as F

OPERATORS = {
    "softmax": lambda x: F.softmax(x, 0),
    "log_softmax": lambda x: F.log_softmax(x, 0),
    "layer_norm": lambda x: F.layer_norm(x, (8,)),
    "rms_norm": lambda x: F.rms_norm(x, (8,)),
    "group_norm": lambda x: F.group_norm(x.view(1, 4, 2), 2),
    "batch_norm": lambda x: F.batch_norm(x.view(4, 2), None, None, training=True),
    "interpolate": lambda x: F.interpolate(x.view(1, 1, 8), scale_factor=2.0, mode="linear"),
    "conv": lambda x: F.conv1d(x.view(1, 1, 8), torch.ones(1, 1, 3)),
    "pool": lambda x: F.max_pool1d(x.view(1, 1, 8), 2),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort().values,
    "matmul": lambda x: x.view(2, 4) @ torch.ones(4, 3),
    "mul": lambda x: x * 2,
    "exp": lambda x: x.exp(),
    "sum": lambda x: x.view(2, 4).sum(1),
    "index": lambda x: x[[0, 0, 5]],
    "view": lambda x: x.view(2, 4),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int64", "bool"])
@pytest.mark.parametrize("name", list(OPERATORS))
def test_gradients_are_converted_to_the_dtype_of_the_result(name, dtype):
    f = OPERATORS[name]

    def gradient(g):
        x = torch.linspace(-1, 1, 8, requires_grad=True)
        y = f(x)
        y.backward(torch.ones(y.shape, dtype=g))
        return x.grad

    got, want = gradient(getattr(torch, dtype)), gradient(torch.float32)
    assert got.dtype == torch.float32
    assert torch.equal(got, want)


class Returns(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, change):
        ctx.change = change
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return ctx.change(g), None


def through(change, dtype=torch.float32):
    x = torch.ones(4, dtype=dtype, requires_grad=True)
    y = Returns.apply(x * 1, change)
    y.backward(torch.ones_like(y))
    return x.grad.tolist()


@pytest.mark.parametrize(
    "change",
    [
        lambda g: g.half(),
        lambda g: g.double(),
        lambda g: g.long(),
        lambda g: g.bool(),
    ],
)
def test_a_function_may_return_another_dtype(change):
    assert through(change) == [1.0] * 4


def test_a_function_may_return_an_expanded_gradient():
    assert through(lambda g: g.expand(3, 4)) == [3.0] * 4


def test_a_real_gradient_of_a_complex_tensor():
    assert through(lambda g: g.real, torch.complex64) == [1.0 + 0j] * 4
    assert through(lambda g: g.to(torch.complex128), torch.complex64) == [1.0 + 0j] * 4


@pytest.mark.parametrize(
    "change, text",
    [
        (lambda g: g[:2], r"got \[2\] but expected shape compatible with \[4\]"),
        (lambda g: g.sum(), r"got \[\] but expected shape compatible with \[4\]"),
        (lambda g: torch.ones(3, 2), r"got \[3, 2\] but expected shape compatible with \[4\]"),
        (lambda g: g.to("meta"), "expected device cpu but got meta"),
    ],
)
def test_a_function_with_a_wrong_gradient(change, text):
    with pytest.raises(
        RuntimeError, match="Function ReturnsBackward returned an invalid gradient at index 0 - "
    ) as e:
        through(change)
    assert e.match(text)


def test_a_complex_gradient_of_a_real_tensor_is_refused():
    with pytest.raises(RuntimeError, match="input_is_complex == grad_is_complex"):
        through(lambda g: g.to(torch.complex64))
    with pytest.raises(RuntimeError, match="input_is_complex == grad_is_complex"):
        through(lambda g: g.real.long(), torch.complex64)


def test_gradients_that_backward_is_called_with():
    x = torch.ones(4, requires_grad=True)
    for dtype in (torch.float16, torch.float64, torch.int64, torch.bool):
        (g,) = torch.autograd.grad(x * 2, x, torch.ones(4, dtype=dtype))
        assert g.dtype == torch.float32 and g.tolist() == [2.0] * 4
        x.backward(torch.ones(4, dtype=dtype))
        assert x.grad.dtype == torch.float32
    with pytest.raises(
        RuntimeError,
        match=r"For complex Tensors, both grad_output and output are required to have the same "
        r"dtype. Mismatch in dtype: grad_output\[0\] has a dtype of torch.complex64 and output\[0\]"
        r" has a dtype of torch.float32.",
    ):
        torch.autograd.grad(x * 2, x, torch.ones(4, dtype=torch.complex64))
    with pytest.raises(RuntimeError, match="^invalid gradient at index 0 - expected device cpu"):
        (x * 2).backward(torch.ones(4, device="meta"))
    with pytest.raises(
        RuntimeError,
        match=r"grad_output\[0\] has a shape of torch.Size\(\[1\]\) and output\[0\] has a shape of "
        r"torch.Size\(\[4\]\).",
    ):
        (x * 2).backward(torch.ones(1))


def myhook(g):
    return g.half()


HOOKS = [
    (
        myhook,
        r"hook 'myhook' has changed the type of value \(was torch.FloatTensor got torch.HalfTensor",
    ),
    (lambda g: g.to(torch.complex64), "got CPUComplexFloatType"),
    (lambda g: g.to("meta"), "got MetaFloatType"),
    (lambda g: g[:2], "hook '<lambda>' has changed the size of value"),
]


@pytest.mark.parametrize("hook, text", HOOKS)
def test_hooks_of_tensors(hook, text):
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    with pytest.raises(RuntimeError, match=text):
        y.sum().backward()
    x.register_hook(hook)
    with pytest.raises(RuntimeError, match=text):
        (x * 3).sum().backward()


@pytest.mark.parametrize("hook, text", HOOKS)
def test_hooks_of_nodes(hook, text):
    name = text.replace("'myhook'", "'<lambda>'")
    x = torch.ones(4, requires_grad=True)
    y = x.exp()
    y.grad_fn.register_hook(lambda ins, outs: (hook(ins[0]),))
    with pytest.raises(RuntimeError, match=name):
        y.sum().backward()
    y = x.exp()
    y.grad_fn.register_prehook(lambda outs: (hook(outs[0]),))
    with pytest.raises(RuntimeError, match=name):
        y.sum().backward()


def test_what_hooks_may_return():
    x = torch.ones(4, requires_grad=True)

    def run(hook, before=False):
        y = x.exp()
        (y.grad_fn.register_prehook if before else y.grad_fn.register_hook)(hook)
        y.sum().backward()

    with pytest.raises(TypeError, match="expected tuple, but hook returned 'Tensor'"):
        run(lambda ins, outs: ins[0])
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        run(lambda ins, outs: (3,))
    with pytest.raises(RuntimeError, match=r"\(got 2, but expected 1\)"):
        run(lambda ins, outs: (ins[0], ins[0]))
    run(lambda ins, outs: (None,))
    run(lambda outs: (None,), before=True)
    assert x.grad is None
    x.register_post_accumulate_grad_hook(lambda p: 3)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        x.sum().backward()


def test_a_leaf_that_becomes_another_dtype():
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    x.data = x.data.half()
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.dtype == torch.float16 and x.grad.tolist() == [3.0] * 3


def test_a_leaf_that_becomes_another_shape_while_a_graph_is_alive():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    x.data = torch.ones(5)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0] * 5
    del y


def test_backward_into_some_inputs():
    x = torch.ones(3, requires_grad=True)
    w = torch.ones(3, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    y = x * w
    (y * 3).sum().backward(inputs=[x, y])
    grad = x.grad
    assert grad.tolist() == [3.0] * 3 and y.grad.tolist() == [3.0] * 3 and w.grad is None
    (x * w).sum().backward(inputs=x)
    assert x.grad is grad and grad.tolist() == [4.0] * 3
    assert seen == [[3.0] * 3, [4.0] * 3]
    g = torch.ones(3)
    x.grad = None
    x.backward(g, inputs=[x])
    x.grad.zero_()
    assert g.tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad"):
        x.sum().backward(inputs=[torch.ones(3)])


# Gradient kept by y.retain_grad() after a write, and that of x where y = 2 x.
WRITES = {
    "mul_": (lambda y: y.mul_(2), [4.0, 4.0, 4.0]),
    "view": (lambda y: y[1:].mul_(2), [2.0, 4.0, 4.0]),
    "view_of_view": (lambda y: y[1:][1:].mul_(2), [2.0, 2.0, 4.0]),
    "copy_": (lambda y: y.copy_(torch.ones(3)), [0.0, 0.0, 0.0]),
    "zero_": (lambda y: y.zero_(), [0.0, 0.0, 0.0]),
    "gt_": (lambda y: y.gt_(0), [0.0, 0.0, 0.0]),
    "cumsum_": (lambda y: y.cumsum_(0), [6.0, 4.0, 2.0]),
    "index_put_": (lambda y: y.__setitem__([0], 4.0), [0.0, 2.0, 2.0]),
}


@pytest.mark.parametrize("name", list(WRITES))
def test_retained_gradients_are_those_of_the_newest_value(name):
    write, want = WRITES[name]
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.retain_grad()
    write(y)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0, 1.0]
    assert x.grad.tolist() == want


def test_retained_gradients_of_views():
    for write in (
        lambda y, v: y.mul_(2),
        lambda y, v: v.mul_(2),
        lambda y, v: y[:2].mul_(3),
    ):
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        v = y[1:]
        v.retain_grad()
        write(y, v)
        (v.sum() + y.sum()).backward()
        assert v.grad.tolist() == [1.0, 1.0]


def test_hooks_stay_with_the_value_they_were_registered_for():
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("old", g.item())))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("new", g.item())))
    y.sum().backward()
    assert seen == [("new", 1.0), ("old", 3.0)]
    assert y.grad.tolist() == [1.0] and y.retains_grad and not x.retains_grad


def test_retained_gradients_are_tensors_of_their_own():
    x = torch.ones(3, requires_grad=True)
    y = x + 0
    z = y + 1
    y.retain_grad()
    z.retain_grad()
    z.sum().backward()
    y.grad.zero_()
    assert z.grad.tolist() == [1.0] * 3 and x.grad.tolist() == [1.0] * 3


def test_hooks_of_modules():
    def run(register):
        m = torch.nn.Linear(2, 2)
        register(m)
        m(torch.ones(2, requires_grad=True)).sum().backward()

    text = "hook 'hook' has changed the type of value"
    with pytest.raises(RuntimeError, match=text):
        run(lambda m: m.register_full_backward_hook(lambda m, ins, outs: (ins[0].half(),)))
    with pytest.raises(RuntimeError, match=text):
        run(lambda m: m.register_full_backward_pre_hook(lambda m, outs: (outs[0].double(),)))
    run(lambda m: m.register_full_backward_hook(lambda m, ins, outs: (ins[0] * 2,)))


SAVING = {
    "softmax": lambda x: F.softmax(x, 0) * torch.arange(8.0),
    "layer_norm": lambda x: F.layer_norm(x, (8,)) * torch.arange(8.0),
    "exp": lambda x: x.exp(),
    "mul": lambda x: x * x,
    "cross_entropy": lambda x: F.cross_entropy(x.view(2, 4), torch.tensor([1, 2])),
    "max_pool": lambda x: F.max_pool1d(x.view(1, 1, 8), 2),
    "gather": lambda x: x.gather(0, torch.tensor([1, 2, 0])),
    "conv": lambda x: F.conv1d(x.view(1, 1, 8), torch.ones(1, 1, 3, requires_grad=True)),
}


@pytest.mark.parametrize("name", list(SAVING))
def test_unpack_hooks_may_return_another_dtype(name):
    from tessera.autograd.graph import saved_tensors_hooks

    def gradient(unpack):
        x = torch.linspace(-1, 1, 8).bfloat16().float().requires_grad_()
        with saved_tensors_hooks(lambda t: t, unpack):
            y = SAVING[name](x)
        y.sum().backward()
        return x.grad

    want = gradient(lambda t: t)
    assert torch.equal(gradient(lambda t: t.double() if t.is_floating_point() else t.int()), want)
    near = gradient(lambda t: t.half() if t.is_floating_point() else t)
    assert torch.allclose(near, want, atol=2e-2)
    for wrong in (lambda t: t.flatten()[:1], lambda t: t.to("meta"), lambda t: t[None]):
        with pytest.raises(RuntimeError, match="the unpack hook returned a tensor of shape"):
            gradient(wrong)
