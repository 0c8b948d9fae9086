"""Dropout of channels and pooling at drawn places: what PyTorch 1.13 draws from seed 3."""

import pytest
from conftest import KIND

import tessera as torch
from tessera.nn import functional as F

image = torch.arange(70.0).reshape(1, 1, 7, 10)
volume = torch.arange(120.0).reshape(1, 1, 4, 5, 6)
kept, dropped = 1.315, -1.0595
CASES = {
    "dropout1d": (
        lambda: F.dropout1d(torch.ones(4, 2), 0.5),
        [2, 2, 2, 2, 0, 0, 2, 2],
    ),
    "dropout2d": (
        lambda: F.dropout2d(torch.ones(2, 3, 1, 2), 0.4),
        [1.6667, 1.6667, 1.6667, 1.6667, 0, 0, 1.6667, 1.6667, 0, 0, 0, 0],
    ),
    "dropout3d": (
        lambda: F.dropout3d(torch.ones(5, 1, 1, 1), 0.4),
        [1.6667, 1.6667, 0, 1.6667, 0],
    ),
    "alpha_dropout": (
        lambda: F.alpha_dropout(torch.ones(6), 0.3, True),
        [kept, kept, dropped, kept, dropped, kept],
    ),
    "feature_alpha_dropout": (
        lambda: F.feature_alpha_dropout(torch.ones(2, 3, 1), 0.3, True),
        [kept, kept, dropped, kept, dropped, kept],
    ),
    "fractional_max_pool2d": (
        lambda: F.fractional_max_pool2d(image, 2, output_size=(3, 4)),
        [11, 13, 16, 19, 31, 33, 36, 39, 61, 63, 66, 69],
    ),
    "fractional_max_pool3d": (
        lambda: F.fractional_max_pool3d(volume, 2, output_ratio=0.5),
        [37, 39, 41, 55, 57, 59, 97, 99, 101, 115, 117, 119],
    ),
}


@pytest.mark.skipif(KIND != "cpu", reason="the CPU's random numbers")
@pytest.mark.parametrize("name", CASES)
def test_draws_are_pytorchs(name):
    function, want = CASES[name]
    torch.manual_seed(3)
    got = function()
    assert got.flatten().tolist() == pytest.approx(want, abs=6e-5)


def test_gradients_of_drawn_pooling(device):
    x = torch.randn(2, 3, 7, 6, dtype=torch.float64, device=device, requires_grad=True)
    draws = torch.rand(2, 3, 2, dtype=torch.float64, device=device)

    def pool(x):
        return F.fractional_max_pool2d(x, 2, output_size=4, _random_samples=draws)

    values, places = F.fractional_max_pool2d_with_indices(
        x, 2, output_size=4, _random_samples=draws
    )
    assert torch.equal(values.flatten(2), x.flatten(2).gather(2, places.flatten(2)))
    assert torch.autograd.gradcheck(pool, x)


def test_in_place_and_evaluation(device):
    x = torch.ones(2, 3, 4, device=device)
    assert F.dropout1d(x, 0.5, training=False) is x
    assert F.dropout1d(x, 0.999, inplace=True) is x
    one = torch.ones(3, 4, device=device)
    assert F.dropout1d(one, 1.0, inplace=True) is one and not one.any()


def test_refusals(device):
    x = torch.ones(2, 3, 4, 4, device=device)
    with pytest.raises(ValueError, match="between 0 and 1"):
        F.dropout2d(x, 1.5)
    with pytest.raises(RuntimeError, match="Expected 2D or 3D input"):
        F.dropout1d(x)
    with pytest.warns(UserWarning, match="3-D input"):
        F.dropout2d(x[0])
    with pytest.raises(ValueError, match="output_size or an output_ratio"):
        F.fractional_max_pool2d(x, 2)
    with pytest.raises(RuntimeError, match="too large relative to input height"):
        F.fractional_max_pool2d(x, 3, output_size=(3, 2))
    with pytest.raises(RuntimeError, match="non-positive-norm"):
        x.renorm(0, 1, 1.0)
    with pytest.raises(ValueError, match="Nx2x3"):
        F.affine_grid(torch.ones(1, 3, 3, device=device), (1, 1, 2, 2), align_corners=False)
