"""Results of pointwise operators keep the order of their inputs' strides, as PyTorch's do: what is
transposed, cut and transposed back can be viewed."""

import pytest

import tessera as torch


def ones(*size, device):
    return torch.ones(*size, device=device)


# How the inputs are made, and PyTorch's strides of the result.
LAYOUTS = {
    "columns of every other": (lambda o: o(8, 6)[:, ::2].t().abs(), (1, 3)),
    "rows of every other": (lambda o: o(8, 6)[::2].t().abs(), (1, 6)),
    "overlapping windows": (lambda o: o(4, 5).unfold(0, 2, 1).abs(), (10, 1, 5)),
    "permuted and cut": (lambda o: o(2, 3, 4).permute(2, 0, 1)[:, :, ::2].neg(), (1, 8, 4)),
    "diagonals": (lambda o: o(16, 16, 2).diagonal(dim1=0, dim2=1).isfinite(), (1, 2)),
    "repeated in front": (lambda o: o(4, 5).t()[None].expand(3, 5, 4).abs(), (20, 1, 5)),
    "repeated rows": (lambda o: o(5).expand(4, 5).abs(), (5, 1)),
    "repeated columns": (lambda o: o(5, 1).expand(5, 4).t().abs(), (5, 1)),
    "the first decides": (lambda o: o(4, 5).t()[::2] + o(3, 4), (1, 3)),
    "the first decides, dense": (lambda o: o(3, 4) + o(4, 3).t(), (4, 1)),
    "a row beside it": (lambda o: o(4, 5).t()[::2] + o(4), (1, 3)),
    "what the first repeats": (lambda o: o(1, 4) + o(4, 3).t(), (1, 3)),
    "channels last, cut": (
        lambda o: o(2, 3, 4, 5).permute(0, 2, 3, 1)[:, 1:].exp(),
        (45, 5, 1, 15),
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_order_of_strides(name, device):
    make, strides = LAYOUTS[name]
    result = make(lambda *size: ones(*size, device=device))
    assert result.stride() == strides


def test_transposed_back_can_be_viewed(device):
    tokens = torch.arange(2 * 5 * 3.0, device=device).view(2, 5, 3)
    channels = torch.relu(tokens[:, 1:].transpose(1, 2) - 4)
    flat = channels.transpose(1, 2).view(2, 12)
    assert flat.tolist() == (tokens[:, 1:].reshape(2, 12) - 4).clamp(min=0).tolist()


def test_new_dimensions_of_one_have_strides(device):
    x = ones(5, device=device)
    assert x.expand(1, 5).stride() == (5, 1)
    assert x.expand(1, 1, 5).stride() == (5, 5, 1)
    assert x.expand(2, 5).stride() == (0, 1)
    assert ones(2, 1, device=device).expand(1, 2, 1).stride() == (2, 1, 1)
    assert torch.tensor(1.0, device=device).expand(1).stride() == (0,)


def test_random_numbers_are_laid_out_as_asked(device):
    x = ones(2, 3, 4, 5, device=device)
    for make in (torch.rand_like, torch.randn_like, lambda t, **k: torch.randint_like(t, 9, **k)):
        assert make(x, memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
        assert make(x.transpose(0, 3)).stride() == (1, 20, 5, 60)
        assert make(x[:, :, ::2]).stride() == (30, 10, 5, 1)


def test_random_numbers_are_drawn_in_the_order_of_memory(device):
    for make in (torch.rand_like, lambda t: torch.randint_like(t, 1000)):
        torch.manual_seed(5)
        dense = make(ones(3, 4, device=device))
        torch.manual_seed(5)
        assert make(ones(3, 4, device=device).t()).t().tolist() == dense.tolist()


def test_random_numbers_go_to_the_device_that_is_named(device):
    assert torch.rand_like(torch.ones(3, 4).t(), device=device).device.type == device
