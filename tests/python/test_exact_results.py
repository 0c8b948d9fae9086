"""Results held to numbers that PyTorch 2 gives on the CPU, where they once differed silently."""

import math

import pytest
from conftest import KIND

import tessera as torch
import tessera.nn.functional as F

nan, inf = math.nan, math.inf
on_cpu = pytest.mark.skipif(KIND == "cuda", reason="GPUs saturate")


def same(got, want):
    got = torch.as_tensor(got, dtype=torch.float64)
    want = torch.as_tensor(want, dtype=torch.float64)
    assert got.shape == want.shape
    assert torch.equal(got.isnan(), want.isnan())
    assert torch.equal(got.nan_to_num(0, 1e300, -1e300), want.nan_to_num(0, 1e300, -1e300)), got


LOW = -(2**31)
VALUES = [1.5, -1.5, 300.0, -129.0, 70000.0, 3e9, -3e9, 4294967296.0, 1e10, -1e10, nan, inf, -inf]
CONVERTED = {
    "int32": [1, -1, 300, -129, 70000, LOW, LOW, LOW, LOW, LOW, LOW, LOW, LOW],
    "int16": [1, -1, 300, -129, 4464, 0, 0, 0, 0, 0, 0, 0, 0],
    "int8": [1, -1, 44, 127, 112, 0, 0, 0, 0, 0, 0, 0, 0],
    "uint8": [1, 255, 44, 127, 112, 0, 0, 0, 0, 0, 0, 0, 0],
    "bool": [1] * 13,
}


@on_cpu
@pytest.mark.parametrize("source", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("target", list(CONVERTED))
def test_conversion_to_integers(source, target, device):
    dtype, want = getattr(torch, target), CONVERTED[target]
    x = torch.tensor(VALUES, dtype=torch.float64).to(getattr(torch, source)).to(device)

    def check(t):
        assert t.dtype == dtype and t.long().tolist() == want

    check(x.to(dtype))
    check(x.repeat_interleave(2)[::2].to(dtype))
    check(x.repeat(40).to(dtype)[-13:])
    check(torch.zeros(13, dtype=dtype, device=device).copy_(x))
    check(torch.stack([v.to(dtype) for v in x]))
    if not x.is_complex():
        check((x * 1).to(dtype))
        if target not in ("bool", "uint8"):
            check(x.view(13, 1).sum(1, dtype=dtype))
            check((x * 1).view(13, 1).sum(1, dtype=dtype))


@on_cpu
@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_conversion_to_integers_without_wide_vectors(isa, tmp_path):
    import os
    import subprocess
    import sys

    code = f"""
import tessera as torch
x = torch.tensor({VALUES[:10]} * 9).repeat(3)
print(x.to(torch.int32)[-10:].tolist() == {CONVERTED["int32"][:10]})
"""
    env = {**os.environ, "TESSERA_ISA": isa}
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
    )
    assert run.stdout == "True\n", run.stderr


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("lambd", [0.1, 0.3, 0.7, 2.3])
def test_shrinks_compare_with_a_rounded_bound(dtype, lambd, device):
    bound = torch.tensor(lambd, dtype=dtype).item()
    x = torch.tensor([bound, -bound, 2 * bound], dtype=dtype, device=device, requires_grad=True)
    y = F.hardshrink(x, lambd)
    same(y.detach().cpu().double(), [0, 0, 2 * bound])
    y.sum().backward()
    same(x.grad.cpu().double(), [0, 0, 1])
    x.grad = None
    y = F.softshrink(x, lambd)
    same(y.detach().cpu().double(), [0, 0, bound])
    y.sum().backward()
    same(x.grad.cpu().double(), [0, 0, 1])
    assert y.grad_fn.name() == "SoftshrinkBackward0"


def test_gradient_with_complex_distances():
    x = torch.tensor([1.0, 4.0, 9.0, 16.0])
    (g,) = torch.gradient(x, spacing=[1 + 2j])
    (want,) = torch.gradient(x, spacing=1 + 2j)
    assert torch.equal(g, want) and g[0].item() == pytest.approx(0.6 - 1.2j)
    a, b = torch.gradient(x.view(2, 2), spacing=[1j, 2.0])
    assert a.tolist() == [[-8j, -12j]] * 2 and b.tolist() == [[1.5, 1.5], [3.5, 3.5]]
    (b,) = torch.gradient(x.view(2, 2), spacing=[2j], dim=1)
    assert b[0, 0].item() == pytest.approx(-1.5j)
    with pytest.raises(RuntimeError, match="torch.gradient expected spacing"):
        torch.gradient(x, spacing=[1j, 1j])
    with pytest.raises(TypeError):
        torch.histogram(x, 3, range=[0j, 1.0])


def test_masked_prod_of_no_dimensions():
    x = torch.arange(1.0, 7).view(2, 3)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    same(torch.masked.prod(x, []), x)
    same(torch.masked.prod(x, [], mask=mask), [[1, 1, 3], [1, 1, 1]])
    same(torch.masked.prod(x.int(), []), x)
    same(torch.masked.prod(x, ()), 720.0)
    same(torch.masked.sum(x, []), 21.0)
    same(torch.masked.amax(x, ()), 6.0)
    same(torch.masked.prod(x), 720.0)


@pytest.mark.parametrize("p", [1, -1, inf, -inf, "fro"])
def test_condition_of_singular_matrices(p):
    zeros, ones, eye = torch.zeros(2, 2), torch.ones(2, 2), torch.eye(2)
    got = torch.linalg.cond(torch.stack([zeros, ones, eye]), p)
    same(got[:2], [inf, inf])
    assert got[2].item() == pytest.approx(2.0 if p == "fro" else 1.0)
    same(torch.linalg.cond(torch.diag(torch.tensor([1.0, 0.0])), p), inf)
    same(torch.linalg.cond(torch.tensor([[nan, 1.0], [1.0, 1.0]]), p), inf)
    if p != "fro":
        same(torch.linalg.cond(torch.zeros(2, 0), p), 0.0)


def test_condition_by_the_nuclear_norm():
    same(torch.linalg.cond(torch.stack([torch.eye(2), torch.zeros(2, 2)]), "nuc"), [4.0, nan])
    same(torch.linalg.cond(torch.diag(torch.tensor([1.0, 0.0])), "nuc"), inf)


def segment(reduce, data, lengths, initial=None):
    x = torch.tensor(data, requires_grad=True)
    y = torch.segment_reduce(x, reduce, lengths=torch.tensor(lengths), initial=initial)
    (g,) = torch.autograd.grad(y, x, torch.arange(1.0, 1 + y.numel()))
    return g


def test_gradients_of_segments():
    same(segment("max", [1, nan, 3, 4.0], [2, 2]), [0, 1, 0, 2])
    same(segment("min", [nan, nan, 3, 4.0], [2, 2]), [0.5, 0.5, 2, 0])
    same(segment("max", [nan, nan, 3, 4.0], [4]), [0.5, 0.5, 0, 0])
    same(segment("max", [1, 2, 3, 4.0], [2, 2], 2.0), [0, 1, 0, 2])
    same(segment("max", [1, 2, 3, 4.0], [2, 2], nan), [0, 0, 0, 0])
    same(segment("max", [1, 2, 2, 2.0], [1, 0, 3]), [1, 1, 1, 1])
    same(segment("prod", [2, 0, 3, 4.0], [2, 2]), [0, 2, 8, 6])
    same(segment("prod", [0, 0, 3, 4.0], [4]), [0, 0, 0, 0])
    same(segment("prod", [0, 5, 3, 4.0], [4], 2.0), [120, 0, 0, 0])
    same(segment("prod", [nan, 5, 3, 4.0], [2, 2]), [5, nan, 8, 6])
    same(segment("prod", [nan, 0, 3, 4.0], [4]), [0, nan, nan, nan])
    same(segment("mean", [1, nan, 3, 4.0], [2, 2]), [0.5, 0.5, 1, 1])


def test_second_gradients_of_products_with_several_zeros():
    def second(make, src, index):
        a = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
        b = torch.tensor(src, dtype=torch.float64, requires_grad=True)
        y = make(a, torch.tensor(index), b)
        g = torch.autograd.grad(y.sum(), [a, b], create_graph=True)
        return torch.autograd.grad(g[0].sum() + 2 * g[1].sum(), [a, b])

    def scatter(a, i, b):
        return a.scatter_reduce(0, i, b, "prod")

    def index(a, i, b):
        return a.index_reduce(0, i, b, "prod")

    for make, name in ((scatter, "scatter_reduce"), (index, "index_reduce")):
        with pytest.raises(RuntimeError, match=name + r"\(\): Double backward is unsupported"):
            second(make, [0.0, 0.0, 6.0], [0, 0, 1])
        # One zero, and zeros that are apart: a0 b0 b1 and a1 b2.
        ga, gb = second(make, [0.0, 5.0, 6.0], [0, 0, 1])
        same(ga, [2 * (0 + 5), 2 * 1])
        same(gb, [5 + 2 * 2, 0 + 2 * 2, 1])
        second(make, [0.0, 5.0, 0.0], [0, 0, 1])
        a = torch.tensor([2.0, 3.0], requires_grad=True)
        b = torch.tensor([0.0, 0.0, 6.0], requires_grad=True)
        make(a, torch.tensor([0, 0, 1]), b).sum().backward()
        same(b.grad, [0, 0, 3])


def test_products_in_a_chain():
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    b = torch.tensor([4.0, 5.0, 6.0], requires_grad=True)
    i = torch.tensor([0, 0, 1])
    y = a.scatter_reduce(0, i, b, "prod").scatter_reduce(0, i, b * 2, "prod")
    y.sum().backward()
    same(a.grad, [20 * 80, 6 * 12])
    same(b.grad, [2 * 5 * 80 * 2, 2 * 4 * 80 * 2, 3 * 12 * 2])


def test_bags_end_with_the_input():
    table = torch.arange(12.0).view(6, 2)
    ids = torch.tensor([0, 1, 2, 3])

    def bag(offsets):
        return F.embedding_bag(
            ids, table, torch.tensor(offsets), mode="sum", include_last_offset=True
        )

    same(bag([0, 2, 4]), [[2, 4], [10, 12]])
    same(bag([0, 0, 4]), [[0, 0], [12, 16]])
    for offsets in ([0, 2, 3], [0, 2], [0]):
        with pytest.raises(RuntimeError, match="the last offset has to be the length of input"):
            bag(offsets)
    with pytest.raises(RuntimeError, match="can not be greater than input's length"):
        bag([0, 2, 5])


def test_unique_rows_with_nan_are_sorted_and_apart():
    x = torch.tensor([[nan, 1.0], [1.0, 2.0], [nan, 1.0], [1.0, 2.0], [1.0, nan]])
    rows, inverse, counts = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
    same(rows, [[1, 2], [1, nan], [nan, 1], [nan, 1]])
    assert counts.tolist() == [2, 1, 1, 1]
    assert inverse.tolist() == [2, 0, 3, 0, 1]


class Scaled:
    """A step of a fused optimizer with the attributes that a GradScaler sets."""

    def __init__(self, kind, fused=True):
        self.p = torch.ones(3, requires_grad=True)
        self.optimizer = kind([self.p], lr=0.5, fused=fused)

    def step(self, scale, found):
        self.p.grad = torch.full((3,), 2.0)
        self.optimizer.grad_scale = None if scale is None else torch.tensor(scale)
        self.optimizer.found_inf = None if found is None else torch.tensor(found)
        self.optimizer.step()
        return self.p.tolist()


def test_optimizers_divide_by_grad_scale():
    s = Scaled(torch.optim.SGD)
    assert s.step(4.0, 0.0) == [0.75] * 3 and s.p.grad.tolist() == [0.5] * 3
    assert s.step(4.0, 1.0) == [0.75] * 3
    assert s.step(None, 1.0) == [0.75] * 3
    assert s.step(None, None) == [-0.25] * 3
    for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad):
        a, b = Scaled(kind), Scaled(kind)
        assert a.step(4.0, 1.0) == [1.0] * 3
        if kind is not torch.optim.Adagrad:
            assert not a.optimizer.state
        a.step(4.0, 0.0)
        b.p.grad = torch.full((3,), 0.5)
        b.optimizer.step()
        assert a.p.tolist() == b.p.tolist()
        with pytest.raises(AssertionError, match="Expected grad_scale and found_inf to be None"):
            Scaled(kind, fused=None).step(4.0, 0.0)


def test_grad_scaler_with_a_fused_optimizer():
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=1.0, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale((p * 0.25).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.75] * 2 and not hasattr(optimizer, "found_inf")
    p.grad.fill_(inf)
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.75] * 2 and scaler.get_scale() == 4.0


def test_grad_scaler_with_an_optimizer_that_scales_itself():
    seen = []

    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def __init__(self, params):
            super().__init__(params, lr=1.0)
            self._step_supports_amp_scaling = True

        def step(self):
            seen.append((self.grad_scale.item(), self.found_inf.item()))

    p = torch.ones(2, requires_grad=True)
    optimizer = Own([p])
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale((p * 0.25).sum()).backward()
    scaler.step(optimizer)
    assert seen == [(8.0, 0.0)] and p.grad.tolist() == [2.0] * 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_make_tensor_stays_below_its_bound(dtype):
    for low, high in ((0, 1), (-9, 9), (2, 3)):
        x = torch.testing.make_tensor((200_000,), dtype=dtype, device="cpu", low=low, high=high)
        assert low <= x.min() and x.max() < high
    x = torch.testing.make_tensor((3,), dtype=dtype, device="cpu", low=1, high=1)
    assert x.tolist() == [1.0] * 3


def test_gradcheck_perturbs_the_inputs_themselves():
    m = torch.nn.Linear(3, 2, dtype=torch.float64)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    before = [p.tolist() for p in m.parameters()]
    assert torch.autograd.gradcheck(lambda x, *p: m(x), (x, *m.parameters()))
    assert [p.tolist() for p in m.parameters()] == before
    assert torch.autograd.gradgradcheck(lambda x, *p: m(x).tanh(), (x, *m.parameters()))
    z = torch.randn(3, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: z * t.conj(), (z,))
    assert torch.autograd.gradcheck(lambda t: (t * t).sum(), (x.detach().t().requires_grad_(),))
    with pytest.raises(RuntimeError, match="0th input has a dimension with stride 0"):
        torch.autograd.gradcheck(
            lambda t: t * 2, (torch.ones((), dtype=torch.float64).expand(3).requires_grad_(),)
        )


def batched(f, *args, **options):
    return torch.func.vmap(f, **options)(*args)


def test_vmap_refuses_examples_in_a_tensor_from_outside():
    x = torch.arange(12.0).view(4, 3)
    y = torch.zeros(3)
    with pytest.raises(RuntimeError) as e:
        batched(lambda x: y.add_(x), x)
    assert str(e.value) == "output with shape [3] doesn't match the broadcast shape [4, 3]"

    def put(x):
        y[0] = x[0]
        return x

    for write in (
        lambda x: y.mul_(x),
        lambda x: y.copy_(x),
        lambda x: y.view(3).lerp_(x, 0.5),
        lambda x: y.detach().fill_(x[0]),
        lambda x: y.masked_fill_(torch.tensor([True, False, True]), x[0] * 2),
        put,
    ):
        with pytest.raises(RuntimeError, match=r"^vmap: .*\(self, \*extra_args\) is not possible"):
            batched(write, x)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        batched(lambda a, b: b.add_(a), x, y, in_dims=(0, None))
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::add.out"):
        batched(lambda x: torch.add(x, 1, out=y), x)
    with pytest.raises(RuntimeError, match="Cannot ask for different inplace randomness"):
        batched(lambda x: (y.uniform_(), x)[1], x, randomness="different")
    assert y.tolist() == [0.0] * 3
    with pytest.raises(RuntimeError, match="broadcast shape"):
        batched(lambda x: batched(lambda z: x.add_(z), torch.ones(2, 3)), x.clone())


def test_vmap_writes_constants_once():
    x = torch.arange(12.0).view(4, 3)
    y = torch.zeros(3)
    got = batched(lambda x: y.add_(1) + x, x)
    assert y.tolist() == [1.0] * 3 and torch.equal(got, x + 1)
    got = batched(lambda a, b: b.mul_(3).add_(1).clone() + a, x, y, in_dims=(0, None))
    assert y.tolist() == [4.0] * 3 and torch.equal(got, x + 4)


def test_vmap_writes_what_belongs_to_an_example():
    x = torch.arange(12.0).view(4, 3)
    z = x.clone()
    assert torch.equal(batched(lambda x: x.mul_(2), z), x * 2) and torch.equal(z, x * 2)
    assert torch.equal(batched(lambda x: torch.zeros_like(x).add_(x), x), x)
    assert torch.equal(
        batched(lambda x: torch.tensor([1.0, 2, 3]).mul_(2) + x, x)[0],
        x[0] + torch.tensor([2.0, 4, 6]),
    )
    total = torch.zeros(3)
    total.add_(x[0])  # after the calls: nothing is watched any more
    assert total.tolist() == x[0].tolist()


def test_vmap_refuses_running_statistics():
    norm = torch.nn.BatchNorm1d(3)
    x = torch.arange(12.0).view(1, 4, 3)
    with pytest.raises(RuntimeError, match="got a batched tensor as input while an argument"):
        batched(norm, x)
    assert batched(norm.eval(), x).shape == x.shape


def test_gradient_transforms_refuse_writes_to_captured_tensors():
    x, y = torch.arange(3.0), torch.zeros(3)
    text = (
        r"attempted to call in-place operation \(aten::add_.Tensor\) that would mutate a captured"
    )

    def constant(x):
        y.add_(1)
        return x.sum()

    for call in (
        lambda: torch.func.grad(lambda x: y.add_(x).sum())(x),
        lambda: torch.func.grad(constant)(x),
        lambda: torch.func.vjp(lambda x: y.add_(x), x),
        lambda: torch.func.jvp(lambda x: y.add_(x), (x,), (x,)),
        lambda: torch.func.jacrev(lambda x: y.add_(x))(x),
        lambda: torch.func.jacfwd(lambda x: y.add_(x))(x),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
    assert y.tolist() == [0.0] * 3 and not y.requires_grad
    assert torch.func.grad(lambda x: torch.zeros(3).add_(x).sum())(x).tolist() == [1.0] * 3
    assert torch.func.grad(lambda x, z: z.add_(1).sum() + x.sum())(x, y).tolist() == [1.0] * 3
    assert y.tolist() == [1.0] * 3


def quantized(x, shape, **options):
    return F.interpolate(torch.tensor(x, dtype=torch.uint8).view(1, 1, *shape), **options)


def test_interpolation_of_bytes_rounds_and_clamps():
    bars = [0, 255, 255, 0, 255, 0, 0, 255]
    got = quantized(bars, (2, 4), size=(2, 8), mode="bicubic")
    assert got.dtype == torch.uint8
    assert got.flatten().tolist() == [
        0,
        58,
        197,
        255,
        255,
        197,
        58,
        0,
        255,
        197,
        58,
        0,
        0,
        58,
        197,
        255,
    ]
    got = quantized(bars, (2, 4), size=(3, 3), mode="bilinear")
    assert got.flatten().tolist() == [42, 255, 42, 128, 128, 128, 213, 0, 213]
    got = quantized(bars, (2, 4), size=(2, 3), mode="bicubic", antialias=True)
    assert got.flatten().tolist() == [63, 255, 63, 192, 0, 192]
    got = quantized([0, 1, 3, 7], (1, 4), size=(1, 2), mode="bilinear")
    assert got.flatten().tolist() == [1, 5]
