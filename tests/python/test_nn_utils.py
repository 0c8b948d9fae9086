"""nn.utils: clipping, vectors, parametrizations, pruning, sequences, fusion, other parameters."""

import copy
import math

import pytest

import tessera as torch
from tessera import nn
from tessera.nn.utils import parametrize


def filled(*shape, start=1.0):
    count = math.prod(shape)
    return torch.tensor([start + i for i in range(count)]).reshape(shape)


def with_grads(*rows):
    params = [nn.Parameter(torch.zeros(len(row))) for row in rows]
    for p, row in zip(params, rows):
        p.grad = torch.tensor(row)
    return params


def test_clip_grad_norm():
    a, b = with_grads([3.0, 0.0], [0.0, 4.0])
    assert nn.utils.get_total_norm([a.grad, b.grad]).item() == pytest.approx(5)
    total = nn.utils.clip_grad_norm_([a, b, nn.Parameter(torch.ones(1))], 1.0)
    assert total.item() == pytest.approx(5)
    assert a.grad.tolist() == pytest.approx([0.6, 0]) and b.grad.tolist() == pytest.approx([0, 0.8])
    nn.utils.clip_grad_norm_(a, 100.0)
    assert a.grad.tolist() == pytest.approx([0.6, 0])
    assert nn.utils.clip_grad_norm_([a, b], 9, math.inf).item() == pytest.approx(0.8)
    assert nn.utils.clip_grad_norm_(iter([a, b]), 0.7, 1.0).item() == pytest.approx(1.4)
    assert a.grad.tolist() == pytest.approx([0.3, 0], rel=1e-5)
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0
    bad = with_grads([math.nan])
    with pytest.raises(RuntimeError, match="non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(bad, 1.0, error_if_nonfinite=True)
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        nn.utils.clip_grad_norm([a], 1.0)


def test_clip_grad_value():
    (a,) = with_grads([3.0, -2.0, 0.5])
    nn.utils.clip_grad_value_([a], 1)
    assert a.grad.tolist() == [1, -1, 0.5]


def test_vectors():
    lin = nn.Linear(2, 1)
    vector = nn.utils.parameters_to_vector(lin.parameters())
    assert vector.tolist() == lin.weight[0].tolist() + lin.bias.tolist()
    nn.utils.vector_to_parameters(filled(3), lin.parameters())
    assert lin.weight.tolist() == [[1, 2]] and lin.bias.tolist() == [3]
    with pytest.raises(TypeError, match="expected torch.Tensor"):
        nn.utils.vector_to_parameters([1], [])


@pytest.mark.parametrize("old", [True, False])
def test_weight_norm(old):
    lin = nn.Linear(2, 2, bias=False)
    lin.weight.data = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    before = lin(torch.ones(1, 2)).tolist()
    if old:
        assert nn.utils.weight_norm(lin) is lin
        assert [n for n, _ in lin.named_parameters()] == ["weight_g", "weight_v"]
        g = lin.weight_g
    else:
        nn.utils.parametrizations.weight_norm(lin)
        g = lin.parametrizations.weight.original0
    assert g.flatten().tolist() == pytest.approx([5, 2])
    assert lin(torch.ones(1, 2)).tolist()[0] == pytest.approx(before[0])
    g.data = g.data * 2
    assert lin(torch.ones(1, 2)).tolist()[0] == pytest.approx([2 * b for b in before[0]])
    lin(torch.ones(1, 2)).sum().backward()
    assert g.grad is not None
    if old:
        with pytest.raises(RuntimeError, match="two weight_norm hooks"):
            nn.utils.weight_norm(lin)
        nn.utils.remove_weight_norm(lin)
        with pytest.raises(ValueError, match="not found"):
            nn.utils.remove_weight_norm(lin)
    else:
        parametrize.remove_parametrizations(lin, "weight")
    assert [n for n, _ in lin.named_parameters()] == ["weight"]
    assert lin.weight.tolist()[0] == pytest.approx([6, 8])


@pytest.mark.parametrize("old", [True, False])
def test_spectral_norm(old):
    torch.manual_seed(0)
    lin = nn.Linear(2, 2, bias=False)
    lin.weight.data = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    if old:
        nn.utils.spectral_norm(lin)
    else:
        nn.utils.parametrizations.spectral_norm(lin)
    for _ in range(30):
        lin(torch.ones(1, 2))
    assert lin.weight.flatten().tolist() == pytest.approx([1, 0, 0, 1 / 3], abs=1e-5)
    lin.eval()
    first = lin(torch.ones(1, 2)).tolist()
    assert lin(torch.ones(1, 2)).tolist() == first
    twin = nn.Linear(2, 2, bias=False)
    (nn.utils if old else nn.utils.parametrizations).spectral_norm(twin)
    twin.load_state_dict(lin.state_dict())
    assert twin.eval()(torch.ones(1, 2)).tolist() == first
    if old:
        nn.utils.remove_spectral_norm(lin)
        assert list(lin.state_dict()) == ["weight"]


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


def test_parametrize():
    lin = nn.Linear(2, 1)
    weight = lin.weight
    value = weight.tolist()
    assert parametrize.register_parametrization(lin, "weight", Doubled()) is lin
    assert type(lin).__name__ == "ParametrizedLinear" and isinstance(lin, nn.Linear)
    assert parametrize.type_before_parametrizations(lin) is nn.Linear
    assert parametrize.is_parametrized(lin, "weight") and not parametrize.is_parametrized(lin, "b")
    assert list(lin.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert lin.parametrizations.weight.original is weight
    assert lin.weight.tolist() == value and [w * 2 for w in weight.tolist()[0]] == value[0]
    lin(torch.ones(1, 2)).sum().backward()
    assert weight.grad.tolist() == [[2, 2]]
    parametrize.register_parametrization(lin, "weight", Doubled())
    assert lin.weight.tolist() == [[2 * v for v in value[0]]]
    lin.weight = torch.ones(1, 2)
    assert weight.tolist() == [[0.25, 0.25]]
    twin = copy.deepcopy(lin)
    assert twin.weight.tolist() == [[1, 1]] and twin.parametrizations is not lin.parametrizations
    with parametrize.cached():
        assert lin.weight is lin.weight
    assert lin.weight is not lin.weight
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        import pickle

        pickle.dumps(lin)
    parametrize.remove_parametrizations(lin, "weight")
    assert type(lin) is nn.Linear and lin.weight is weight and weight.tolist() == [[1, 1]]
    parametrize.remove_parametrizations(twin, "weight", leave_parametrized=False)
    assert twin.weight.tolist() == [[0.25, 0.25]]


def test_parametrize_refuses():
    class Wrong(nn.Module):
        def forward(self, x):
            return x.sum()

    lin = nn.Linear(2, 1)
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(lin, "weight", Wrong())
    assert type(lin) is nn.Linear and "weight" in lin._parameters
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(lin, "absent", Doubled())
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(lin, "weight")


@pytest.mark.parametrize("name", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_orthogonal(name, shape):
    torch.manual_seed(0)
    lin = nn.utils.parametrizations.orthogonal(nn.Linear(*shape), orthogonal_map=name)
    w = lin.weight
    product = w @ w.mT if w.shape[0] <= w.shape[1] else w.mT @ w
    n = min(shape)
    flat = [float(i == j) for i in range(n) for j in range(n)]
    assert product.flatten().tolist() == pytest.approx(flat, abs=1e-5)


def test_prune():
    from tessera.nn.utils import prune

    lin = nn.Linear(4, 2)
    lin.weight.data = filled(2, 4)
    prune.l1_unstructured(lin, "weight", 0.5)
    assert list(lin.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    assert lin.weight.tolist() == [[0, 0, 0, 0], [5, 6, 7, 8]] and prune.is_pruned(lin)
    assert lin(torch.ones(1, 4)).shape == (1, 2)
    prune.ln_structured(lin, "weight", 1, n=2, dim=1)
    assert lin.weight.tolist()[1] == [0, 6, 7, 8]
    prune.remove(lin, "weight")
    assert not prune.is_pruned(lin) and isinstance(lin.weight, nn.Parameter)
    assert lin.weight.tolist()[1] == [0, 6, 7, 8]
    with pytest.raises(ValueError, match="has to be pruned before"):
        prune.remove(lin, "weight")
    with pytest.raises(ValueError, match="should either be a float"):
        prune.l1_unstructured(lin, "weight", 1.5)
    prune.custom_from_mask(lin, "bias", torch.tensor([1, 0]))
    assert lin.bias.tolist()[1] == 0


def test_sequences(device):
    from tessera.nn.utils import rnn

    parts = [filled(n, 2, start=10.0 * n).to(device) for n in (2, 3, 1)]
    padded = rnn.pad_sequence(parts, batch_first=True, padding_value=-1.0)
    assert padded.shape == (3, 3, 2) and padded[2].tolist() == [[10, 11], [-1, -1], [-1, -1]]
    assert rnn.pad_sequence(parts).shape == (3, 3, 2)
    left = rnn.pad_sequence(parts, batch_first=True, padding_side="left")
    assert left[2].tolist() == [[0, 0], [0, 0], [10, 11]]
    for part, got in zip(parts, rnn.unpad_sequence(padded, torch.tensor([2, 3, 1]), True)):
        assert part.tolist() == got.tolist()
    packed = rnn.pack_sequence(parts, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    assert packed.data[:3].tolist() == [[30, 31], [20, 21], [10, 11]]
    back, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0)
    assert back.tolist() == padded.tolist() and lengths.tolist() == [2, 3, 1]
    longer, _ = rnn.pad_packed_sequence(packed, total_length=5)
    assert longer.shape == (5, 3, 2)
    assert packed.to(torch.float64).data.dtype == torch.float64
    with pytest.raises(RuntimeError, match="must be sorted in decreasing order"):
        rnn.pack_sequence(parts)
    with pytest.raises(RuntimeError, match="greater than 0"):
        rnn.pack_padded_sequence(padded, [2, 0, 0], True)
    with pytest.raises(ValueError, match="Expected total_length to be at least"):
        rnn.pad_packed_sequence(packed, total_length=1)


def test_fusion():
    lin, bn = nn.Linear(3, 2).eval(), nn.BatchNorm1d(2).eval()
    bn.running_mean.copy_(torch.tensor([0.5, -1.0]))
    bn.running_var.copy_(torch.tensor([2.0, 0.5]))
    x = filled(4, 3)
    fused = nn.utils.fuse_linear_bn_eval(lin, bn)
    for got, wanted in zip(fused(x).tolist(), bn(lin(x)).tolist()):
        assert got == pytest.approx(wanted, rel=1e-4, abs=1e-5)
    with pytest.raises(AssertionError, match="only for eval"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(1, 1), nn.BatchNorm1d(1))


def test_functional_call():
    from tessera.nn.utils.stateless import functional_call

    net = nn.Sequential(nn.Linear(2, 1, bias=False))
    own = net[0].weight.tolist()
    w = torch.ones(1, 2, requires_grad=True)
    out = functional_call(net, {"0.weight": w}, torch.ones(1, 2))
    out.sum().backward()
    assert out.tolist() == [[2]] and w.grad.tolist() == [[1, 1]]
    assert net[0].weight.tolist() == own and net[0].weight.grad is None
    tied = nn.Module()
    tied.a = nn.Linear(1, 1, bias=False)
    tied.b = tied.a
    tied.forward = lambda x: tied.b(x)
    assert (
        functional_call(tied, {"a.weight": torch.full((1, 1), 3.0)}, torch.ones(1, 1)).item() == 3
    )
    with pytest.raises(KeyError, match="absent"):
        functional_call(net, {"absent": w}, torch.ones(1, 2))
    with pytest.raises(RuntimeError, match="Missing key"):
        functional_call(nn.Linear(1, 1), {"bias": w}, torch.ones(1, 1), strict=True)


def test_skip_init():
    lin = nn.utils.skip_init(nn.Linear, 3, 2)
    assert lin.weight.shape == (2, 3) and lin.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        nn.utils.skip_init(nn.Identity)


def test_data_parallel(device):
    net = nn.Linear(2, 1)
    wrapped = nn.DataParallel(net, device_ids=[0] if device == "cuda" else None)
    if device == "cpu" and wrapped.device_ids:
        pytest.skip("a cuda device is here, the test is for machines without")
    out = wrapped(torch.ones(1, 2))
    assert out.device.type == device
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]


def test_data_parallel_over_two_devices(accelerator):
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two cuda devices")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 2)
            self.register_buffer("scale", torch.tensor(2.0))

        def forward(self, x, add=0):
            out = self.lin(x) * self.scale + add
            return {"out": out, "rows": (out.sum(1), x.device.index)[0]}

    torch.manual_seed(0)
    net = Net().cuda()
    x = filled(5, 3).cuda()
    both = nn.DataParallel(net, device_ids=[0, 1])
    got = both(x, add=1)
    wanted = net(x, add=1)
    assert got["out"].device == x.device and got["out"].shape == (5, 2)
    assert got["out"].flatten().tolist() == pytest.approx(wanted["out"].flatten().tolist())
    assert got["rows"].tolist() == pytest.approx(wanted["rows"].tolist())
    got["out"].sum().backward()
    grad = net.lin.weight.grad.flatten().tolist()
    net.zero_grad()
    wanted["out"].sum().backward()
    assert grad == pytest.approx(net.lin.weight.grad.flatten().tolist())
    assert both(x[:1])["out"].shape == (1, 2)
    with pytest.raises(RuntimeError, match="must have its parameters and buffers on device"):
        nn.DataParallel(Net(), device_ids=[0, 1])(x)
