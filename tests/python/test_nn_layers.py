"""Every layer against PyTorch's: first parameters, outputs, gradients, buffers, how it prints."""

import json
import re
from pathlib import Path

import pytest
from layers import CASES, INITS, build, fingerprint, key, run, run_init

import tessera as torch

RECORDED = json.loads((Path(__file__).parent / "data" / "layers.json").read_text())
OLD = [case for case in CASES if not case[2].get("new")]


def same(got, wanted, rel, what):
    assert got[0] == wanted[0], f"{what}: shape"
    assert got[1] == pytest.approx(wanted[1], rel=rel, abs=rel * 10), what
    scale = max(1.0, abs(wanted[2]))
    assert got[2] == pytest.approx(wanted[2], rel=rel, abs=rel * 10 * scale), what


@pytest.mark.parametrize("text", sorted({c[0] for c in OLD if "Lazy" not in c[0]}))
def test_first_parameters(text):
    """The same seed draws the same numbers."""
    wanted = next(RECORDED[key(c)] for c in OLD if c[0] == text)["parameters"]
    layer, _, _ = build(torch, text)
    got = dict(layer.named_parameters())
    assert list(got) == list(wanted)
    for name, p in got.items():
        same(fingerprint(p), wanted[name], 1e-6, name)


@pytest.mark.parametrize("case", OLD, ids=key)
def test_layer(case, device):
    if "Lazy" in case[0] and device != "cpu":
        pytest.skip("its parameters are drawn on the device, whose numbers are others")
    wanted = RECORDED[key(case)]
    got = run(torch, case, device)
    # In float64, but for what starts with a draw in float32.
    assert len(got["outputs"]) == len(wanted["outputs"])
    for i, (mine, theirs) in enumerate(zip(got["outputs"], wanted["outputs"])):
        same(mine, theirs, 2e-7, f"output {i}")
    assert set(got["grads"]) == set(wanted["grads"])
    for name in wanted["grads"]:
        same(got["grads"][name], wanted["grads"][name], 2e-7, f"gradient of {name}")
    assert list(got["buffers"]) == list(wanted["buffers"])
    for name in wanted["buffers"]:
        same(got["buffers"][name], wanted["buffers"][name], 2e-7, name)


@pytest.mark.parametrize("text", sorted({c[0] for c in OLD if "Lazy" not in c[0]}))
def test_prints(text):
    layer, _, _ = build(torch, text)
    wanted = next(RECORDED[key(c)] for c in OLD if c[0] == text)["repr"]
    if "ModuleList" in wanted:
        return  # later versions print layers that are alike once: see the test of ModuleList
    # Later versions quote the mode.
    assert repr(layer) == re.sub(r"(?<!\w)mode=(\w+)", r"mode='\1'", wanted)


@pytest.mark.parametrize("call, shape", INITS, ids=str)
def test_init(call, shape):
    got = run_init(torch, call, shape)
    # The normal distribution's numbers pass through a logarithm, cosine or inverse.
    same(got, RECORDED[f"init {call} {shape}"], 2e-6, call)


def test_init_refuses():
    from tessera.nn import init

    w = torch.empty(3)
    for act, words in (
        (lambda: init.eye_(w), "2 dimensions"),
        (lambda: init.dirac_(w), "3, 4, or 5 dimensions"),
        (lambda: init.orthogonal_(w), "2 or more dimensions"),
        (lambda: init.sparse_(w, 0.1), "2 dimensions"),
        (lambda: init.xavier_normal_(w), "fewer than 2 dimensions"),
        (lambda: init.calculate_gain("nothing"), "Unsupported nonlinearity"),
        (lambda: init.kaiming_normal_(torch.empty(2, 2), mode="x"), "Mode x not supported"),
    ):
        with pytest.raises(ValueError, match=words):
            act()
    with pytest.warns(FutureWarning, match="deprecated in favor of `nn.init.uniform_`"):
        init.uniform(w)
    with pytest.warns(UserWarning, match="zero-element"):
        init.kaiming_uniform_(torch.empty(0, 3))
    assert w.requires_grad is False and init.calculate_gain("leaky_relu", 0.2) == pytest.approx(
        (2 / 1.04) ** 0.5
    )


def test_layers_refuse():
    for act, error, words in (
        (lambda nn: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible"),
        (lambda nn: nn.Conv2d(4, 3, 3, groups=2), ValueError, "out_channels must be divisible"),
        (lambda nn: nn.Conv2d(3, 4, 3, padding="some"), ValueError, "Invalid padding string"),
        (lambda nn: nn.Conv2d(3, 4, 3, 2, padding="same"), ValueError, "padding='same' is not"),
        (lambda nn: nn.Conv2d(3, 4, 3, padding_mode="x"), ValueError, "padding_mode must be one"),
        (lambda nn: nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"), ValueError, "zeros"),
        (lambda nn: nn.Dropout(1.5), ValueError, "between 0 and 1"),
        (lambda nn: nn.GroupNorm(2, 3), ValueError, "must be divisible by num_groups"),
        (lambda nn: nn.MultiheadAttention(5, 2), AssertionError, "divisible by num_heads"),
        (lambda nn: nn.Embedding(3, 2, padding_idx=3), AssertionError, "within num_embeddings"),
        (lambda nn: nn.LSTM(3, 4, proj_size=4), ValueError, "smaller than hidden_size"),
        (lambda nn: nn.GRU(3, 4, dropout=2), ValueError, "dropout should be a number"),
        (lambda nn: nn.RNN(3, 4, nonlinearity="x"), ValueError, "Unknown nonlinearity"),
        (lambda nn: nn.Hardtanh(1, 0), AssertionError, "larger"),
        (lambda nn: nn.MultiMarginLoss(p=3), ValueError, "only p == 1 and p == 2"),
        (lambda nn: nn.BatchNorm1d(3)(torch.ones(3)), ValueError, "expected 2D or 3D input"),
        (lambda nn: nn.Unflatten("x", 1), NotImplementedError, "named"),
        (lambda nn: nn.Bilinear(0, 1, 1), ValueError, "in1_features must be > 0"),
    ):
        with pytest.raises(error, match=words):
            act(torch.nn)


def test_losses_of_old_programs():
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert torch.nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning):
        assert torch.nn.L1Loss(reduce=False).reduction == "none"


def test_names():
    """Every name is there, and where PyTorch has it."""
    from tessera.nn import modules

    for name in modules.__all__:
        cls = getattr(torch.nn, name)
        assert cls.__name__ == name and cls.__doc__
    from tessera.nn.modules.activation import MultiheadAttention
    from tessera.nn.modules.batchnorm import _BatchNorm
    from tessera.nn.modules.conv import LazyConv2d, _ConvNd
    from tessera.nn.modules.utils import _pair

    assert MultiheadAttention is torch.nn.MultiheadAttention and _pair(3) == (3, 3)
    assert issubclass(LazyConv2d, _ConvNd) and issubclass(torch.nn.BatchNorm2d, _BatchNorm)


def test_equivalents_of_the_newest(device):
    """Layers that PyTorch 1.13 lacks, by what they are equal to."""
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, -1.0, 1.0, 2.0]], device=device)
    rms = torch.nn.RMSNorm(4, eps=1e-6).to(device)(x)
    for row, got in zip(x.tolist(), rms.tolist()):
        scale = (sum(v * v for v in row) / 4 + 1e-6) ** -0.5
        assert got == pytest.approx([v * scale for v in row], rel=1e-6)
    line = x.reshape(1, 2, 4)
    assert torch.nn.ZeroPad1d((1, 0))(line).tolist()[0][0] == [0, 1, 2, 3, 4]
    assert torch.nn.CircularPad1d((1, 2))(line).tolist()[0][0] == [4, 1, 2, 3, 4, 1, 2]
    norm = torch.nn.LayerNorm(4, bias=False).to(device)
    assert norm.bias is None
    full = torch.nn.LayerNorm(4).to(device)
    assert norm(x).tolist() == full(x).tolist()
