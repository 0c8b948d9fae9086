"""torch._foreach_x over lists: what the operator gives for each tensor."""

import pytest

import tessera as torch


def lists(device):
    torch.manual_seed(0)
    return [[torch.rand(n, 3).add(0.1).to(device) for n in (2, 4)] for _ in range(3)]


@pytest.mark.parametrize(
    "name", "abs neg sqrt rsqrt reciprocal exp log sign sigmoid tanh round erf expm1".split()
)
def test_of_one_list(name, device):
    (a, _, _) = lists(device)
    want = [getattr(torch, name)(t) for t in a]
    assert all(map(torch.equal, getattr(torch, f"_foreach_{name}")(a), want))
    assert getattr(torch, f"_foreach_{name}_")(a) is None
    assert all(map(torch.equal, a, want))


@pytest.mark.parametrize("name", "add sub mul div maximum minimum pow".split())
def test_of_two(name, device):
    a, b, _ = lists(device)
    function, inplace = getattr(torch, f"_foreach_{name}"), getattr(torch, f"_foreach_{name}_")
    want = [getattr(torch, name)(t, o) for t, o in zip(a, b)]
    assert all(map(torch.equal, function(a, b), want))
    half = [getattr(torch, name)(t, torch.full_like(t, 0.5)) for t in a]
    assert all(map(torch.allclose, function(a, 0.5), half))
    each = [getattr(torch, name)(t, torch.full_like(t, s)) for t, s in zip(a, (0.5, 2.0))]
    assert all(map(torch.allclose, function(a, [0.5, 2.0]), each))
    inplace(a, b)
    assert all(map(torch.equal, a, want))


def test_of_three(device):
    a, b, c = lists(device)
    want = [torch.addcmul(x, y, z, value=0.5) for x, y, z in zip(a, b, c)]
    assert all(map(torch.equal, torch._foreach_addcmul(a, b, c, 0.5), want))
    want = [torch.addcdiv(x, y, z, value=v) for x, y, z, v in zip(a, b, c, (1.0, 2.0))]
    assert all(map(torch.equal, torch._foreach_addcdiv(a, b, c, [1.0, 2.0]), want))
    assert all(
        map(torch.equal, torch._foreach_addcdiv(a, b, c, scalars=torch.tensor([1.0, 2.0])), want)
    )
    want = [torch.lerp(x, y, 0.25) for x, y in zip(a, b)]
    assert all(map(torch.equal, torch._foreach_lerp(a, b, 0.25), want))
    torch._foreach_lerp_(a, b, 0.25)
    assert all(map(torch.equal, a, want))


def test_the_rest(device):
    a, b, _ = lists(device)
    norms = torch._foreach_norm(a)
    assert [n.item() for n in norms] == pytest.approx([t.norm().item() for t in a])
    assert torch.equal(torch._foreach_max(a)[1], a[1].max())
    torch._foreach_add_(a, b, alpha=2)
    torch._foreach_copy_(a, b)
    assert all(map(torch.equal, a, b)) and a[0] is not b[0]
    torch._foreach_zero_(a)
    assert not any(t.any() for t in a)
    with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
        torch._foreach_add(a, b[:1])
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_neg([])
