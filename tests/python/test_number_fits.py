"""Numbers that a dtype has no place for: refused, wrapped, brought into range or kept in float."""

import math

import pytest

import tessera as torch
from tessera import fuse

inf, nan = math.inf, math.nan
REFUSED = [
    (2**40, "int32", "int"),
    (300, "uint8", "uint8_t"),
    (-256, "uint8", "uint8_t"),
    (-1.0, "uint8", "uint8_t"),
    (70000, "int16", "int16_t"),
    (128.0, "int8", "int8_t"),
    (nan, "int64", "int64_t"),
    (1e19, "int64", "int64_t"),
    (inf, "int32", "int"),
    (1e300, "float32", "float"),
    (65505, "float16", "c10::Half"),
    (1e39, "bfloat16", "c10::BFloat16"),
    (1j, "float32", "float"),
    (1e300j, "complex64", "c10::complex<float>"),
]
HELD = [
    (-1, "uint8", 255),
    (-255, "uint8", 1),
    (255.5, "uint8", 255),
    (127.5, "int8", 127),
    (inf, "float16", inf),
    (65504, "float16", 65504.0),
    (1 + 0j, "float32", 1.0),
    (1e300, "bool", True),
    (1e300, "float64", 1e300),
]
WAYS = {
    "full": lambda v, t: torch.full((2,), v, dtype=t),
    "fill_": lambda v, t: torch.zeros(2, dtype=t).fill_(v),
    "full_like": lambda v, t: torch.full_like(torch.zeros(2, dtype=t), v),
    "empty": lambda v, t: torch.full((0,), v, dtype=t),
    "pad": lambda v, t: torch.constant_pad_nd(torch.zeros(1, dtype=t), (1, 1), v),
    "scatter": lambda v, t: torch.zeros(2, dtype=t).scatter(0, torch.tensor([0, 1]), v),
    "masked_fill": lambda v, t: torch.zeros(2, dtype=t).masked_fill(torch.ones(2).bool(), v),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number, dtype, name", REFUSED, ids=str)
def test_a_number_without_a_place_is_refused(number, dtype, name, way):
    with pytest.raises(RuntimeError, match=f"converted to type {name} without overflow"):
        WAYS[way](number, getattr(torch, dtype))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("number, dtype, value", HELD, ids=str)
def test_a_number_with_a_place_is_taken(number, dtype, value, way):
    got = WAYS[way](number, getattr(torch, dtype)).tolist()
    assert got[:1] in ([value], [], [0]) and (way not in ("full", "fill_") or got == [value] * 2)


def test_numbers_of_operators(device):
    def refuses(function, name):
        with pytest.raises(RuntimeError, match=f"converted to type {name} without overflow"):
            function()

    small, x = torch.ones(2, dtype=torch.int8, device=device), torch.ones(2, device=device)
    for kernel in ("linspace", "logspace"):
        refuses(lambda k=kernel: getattr(torch, k)(0, 300, 3, dtype=torch.uint8), "uint8_t")
        refuses(lambda k=kernel: getattr(torch, k)(0, 1e300, 3), "float")
    refuses(lambda: torch.where(small > 0, small, 300), "int8_t")
    refuses(lambda: torch.where(x > 0, x, 1e300), "float")
    refuses(lambda: small.pow(300), "int8_t")
    refuses(lambda: small.add(small, alpha=300), "int8_t")
    refuses(lambda: x.add(x, alpha=1e300), "float")
    refuses(lambda: x.addcmul(x, x, value=1e300), "float")
    refuses(lambda: torch.lerp(x, x, 1e300), "float")
    m = torch.ones(2, 2, dtype=torch.int8, device=device)
    refuses(lambda: torch.addmm(m, m, m, beta=300), "int8_t")
    # Numbers beside tensors wrap, and beside integers a factor loses its fraction.
    assert (small + 300).tolist() == [45, 45]
    assert torch.where(small > 1, small, -1).tolist() == [-1, -1]
    whole = torch.tensor([1, 2], device=device)
    assert whole.addcmul(whole, whole, value=1.5).tolist() == [2, 6]


def test_bounds_beyond_an_integers_range(device):
    def of(values, dtype):
        return torch.tensor(values, dtype=dtype, device=device)

    small, byte = of([-3, 0, 3], torch.int8), of([0, 250, 255], torch.uint8)
    assert small.clamp(-1000, 1000).tolist() == [-3, 0, 3]
    assert byte.clamp(-5, 300).tolist() == [0, 250, 255]
    assert byte.clamp(-5, 251).tolist() == [0, 250, 251]
    assert byte.clamp_min(-1).tolist() == [0, 250, 255]
    assert byte.clamp_max(300).tolist() == [0, 250, 255]
    assert byte.clone().clamp_(-1, 300).tolist() == [0, 250, 255]
    wide = of([1, 2, 3], torch.int32)
    assert wide.clamp(-(2**40), 2**40).tolist() == [1, 2, 3]
    words = "outside the representable range"
    for refused in (
        lambda: wide.clamp_min(2**40),
        lambda: wide.clamp(max=-(2**40)),
        lambda: byte.clamp_max(-1),
        lambda: byte.clamp_min(300),
    ):
        with pytest.raises(RuntimeError, match=words):
            refused()
    with pytest.raises(RuntimeError, match="without overflow"):
        of([1.0], torch.float32).clamp(max=1e300)


@pytest.mark.parametrize("mode", ["off", "on", "check"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_tensor_without_dimensions_beside_half_floats_stays_a_float(dtype, mode, device):
    """As a number does: a factor of 1e-6 is no half float."""
    x = torch.tensor([1.0, 2.7, 3.3, 1000.0], device=device).to(getattr(torch, dtype))
    before = fuse.mode()
    fuse.set_mode(mode)
    try:
        for number in (1e-6, 70000.0, 0.1):
            for wide in (torch.float32, torch.float64):
                zero_dim = torch.tensor(number, dtype=wide, device=device)
                for name in ("mul", "div", "add", "sub"):
                    f = getattr(torch, name)
                    assert f(x, zero_dim).tolist() == f(x, number).tolist()
                    assert f(x, zero_dim).dtype == x.dtype
                # Made within the same group.
                assert (x * (zero_dim + 0)).tolist() == (x * number).tolist()
        tiny = torch.tensor(1e-6, device=device)
        assert torch.mul(x, tiny)[3].item() != 0
    finally:
        fuse.set_mode(before)


def test_gradients_are_unscaled_in_float(device):
    for shape in ((), (1,)):
        grad = torch.tensor([60000.0, 1.0], device=device).half()
        found = torch.zeros(shape, device=device)
        torch._C.ops["_amp_foreach_non_finite_check_and_unscale_"](
            [grad], found, torch.full(shape, 2.0**-16, device=device)
        )
        assert grad.tolist() == [(torch.tensor(60000.0) * 2.0**-16).half().item(), 2.0**-16]
        assert found.tolist() in (0.0, [0.0])


def test_the_scale_is_updated_whatever_the_shapes_are():
    for shapes in (((), (), ()), ((1,), (), (1,)), ((), (1,), (1,))):
        scale = torch.full(shapes[0], 4.0)
        tracker = torch.zeros(shapes[1], dtype=torch.int32)
        update = torch._C.ops["_amp_update_scale_"]
        update(scale, tracker, torch.zeros(shapes[2]), 2.0, 0.5, 2)
        assert (scale.item(), tracker.item()) == (4.0, 1)
        update(scale, tracker, torch.zeros(shapes[2]), 2.0, 0.5, 2)
        assert (scale.item(), tracker.item()) == (8.0, 0)
        update(scale, tracker, torch.ones(shapes[2]), 2.0, 0.5, 2)
        assert (scale.item(), tracker.item()) == (4.0, 0)
        assert (scale.shape, tracker.shape) == shapes[:2]


def test_ranges_of_integers_count_by_the_numbers_given():
    a = torch.arange
    assert a(0, 10, 2.5, dtype=torch.int64).tolist() == [0, 2, 4, 6]
    assert a(0, 3, 0.5, dtype=torch.int64).tolist() == [0] * 6
    assert a(0.0, -8.000001, -4.0, dtype=torch.int64).tolist() == [0, -4]  # by whole steps
    assert a(2**53, 2**53 + 3).tolist() == [2**53, 2**53 + 1, 2**53 + 2]
    for step in (0, 0.0):
        with pytest.raises(RuntimeError, match="step must be nonzero"):
            a(0, 10, step, dtype=torch.int64)


def test_bools_to_the_power_of_bools():
    x = torch.tensor([True, False])
    assert x.pow(True).tolist() == [True, False] and x.pow(False).tolist() == [True, True]
    assert x.pow(True).dtype == torch.bool
    with pytest.raises(NotImplementedError):
        x.pow(x)
