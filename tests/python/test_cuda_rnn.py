"""RNN, LSTM and GRU on the device against the CPU's steps: outputs, states and all gradients."""

import pytest

import tessera as torch
from tessera.nn.utils.rnn import PackedSequence, pack_padded_sequence

KINDS = {
    "tanh": lambda *a, **k: torch.nn.RNN(*a, **k),
    "relu": lambda *a, **k: torch.nn.RNN(*a, nonlinearity="relu", **k),
    "lstm": torch.nn.LSTM,
    "gru": torch.nn.GRU,
}
TOLERANCE = {
    torch.float32: 2e-5,
    torch.float64: 1e-12,
    torch.float16: 2e-2,
    torch.bfloat16: 1e-1,
}
LENGTHS = [5, 2, 4, 5]
INPUT, HIDDEN, STEPS, BATCH = 3, 6, 5, 4


@pytest.fixture(autouse=True)
def exact():
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def by_cudnn():
    """Is there one, and a device that it runs on?"""
    return torch.cuda.is_available() and torch.backends.cudnn.is_available()


def close(a, b, dtype):
    a, b = a.detach().cpu().double(), b.detach().cpu().double()
    assert a.shape == b.shape
    assert float((a - b).abs().max()) <= TOLERANCE[dtype] * (1 + float(b.abs().max()))


def states_of(state):
    return list(state) if isinstance(state, tuple) else [state]


def run(net, device, x, state, packed=False, train=True):
    """Outputs and states, then gradients of input, states and weights."""
    net = net.to(device)
    x = x.detach().to(device).requires_grad_()
    state = [s.detach().to(device).requires_grad_() for s in state]
    given = tuple(state) if len(state) > 1 else state[0]
    data = x
    if packed:
        data = pack_padded_sequence(x, LENGTHS, net.batch_first, enforce_sorted=False)
    out, last = net(data, given)
    outs = [out.data if isinstance(out, PackedSequence) else out, *states_of(last)]
    if not train:
        return outs
    loss = sum((o * torch.linspace(-1, 2, o.numel()).to(o).reshape(o.shape)).sum() for o in outs)
    wanted = [x, *state, *net.parameters()]
    return outs + list(torch.autograd.grad(loss, wanted))


def compare(device, kind, dtype=torch.float32, packed=False, train=True, batch=BATCH, **options):
    torch.manual_seed(0)
    net = KINDS[kind](INPUT, HIDDEN, dtype=dtype, **options)
    shape = (batch, STEPS) if options.get("batch_first") else (STEPS, batch)
    x = torch.randn(*shape, INPUT, dtype=torch.float64).to(dtype)
    parts = net.num_layers * (2 if net.bidirectional else 1)
    sizes = [net.proj_size or HIDDEN] + ([HIDDEN] if kind == "lstm" else [])
    state = [torch.randn(parts, batch, n, dtype=torch.float64).to(dtype) for n in sizes]
    if train:
        expected = run(net, "cpu", x, state, packed)
        found = run(net, device, x, state, packed)
    else:
        with torch.no_grad():
            expected = run(net, "cpu", x, state, packed, False)
            found = run(net, device, x, state, packed, False)
    assert len(expected) == len(found)
    for a, b in zip(found, expected):
        assert a.dtype == b.dtype == dtype
        close(a, b, dtype)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("form", ["sequence", "batch", "packed"])
def test_same_as_steps(device, kind, layers, bidirectional, form):
    compare(
        device,
        kind,
        packed=form == "packed",
        num_layers=layers,
        bidirectional=bidirectional,
        batch_first=form == "batch",
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_dtypes(device, kind, dtype):
    compare(device, kind, dtype)
    compare(device, kind, dtype, packed=True)


@pytest.mark.parametrize("kind", KINDS)
def test_without_biases_and_without_gradients(device, kind):
    compare(device, kind, bias=False)
    compare(device, kind, train=False, num_layers=2)
    compare(device, kind, train=False, packed=True, batch_first=True)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_projection(device, bidirectional, packed, bias):
    compare(
        device,
        "lstm",
        packed=packed,
        num_layers=2,
        proj_size=2,
        bidirectional=bidirectional,
        bias=bias,
    )


@pytest.mark.parametrize("batch", [7, 11])
def test_limits_that_are_not_told(device, batch):
    """The emulated cuDNN refuses these late: the first of them but once, the other always."""
    for _ in range(2):
        compare(device, "lstm", batch=batch, num_layers=2, bidirectional=True)


def test_many_layers_and_wide_ones(device):
    compare(device, "gru", num_layers=9, bidirectional=True)  # more weights than one launch moves
    torch.manual_seed(1)
    net = torch.nn.LSTM(20, 260)  # beyond the kernels for small ones
    x, state = torch.randn(2, 2, 20), [torch.randn(1, 2, 260) for _ in range(2)]
    for a, b in zip(run(net, device, x, state), run(net, "cpu", x, state)):
        close(a, b, torch.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_unbatched_input_and_no_state(device, kind, batch_first):
    torch.manual_seed(0)
    net = KINDS[kind](INPUT, HIDDEN, batch_first=batch_first)
    x = torch.randn(STEPS, INPUT)
    out, last = net(x)
    net = net.to(device)
    out2, last2 = net(x.to(device))
    for a, b in zip([out2, *states_of(last2)], [out, *states_of(last)]):
        close(a, b, torch.float32)


@pytest.mark.parametrize("which", range(3))
def test_one_result_alone(device, which):
    """Gradients of results that were not used are zeros."""
    torch.manual_seed(0)
    net = torch.nn.LSTM(INPUT, HIDDEN, 2)
    x = torch.randn(STEPS, BATCH, INPUT)

    def grads(where):
        net.to(where)
        out, (h, c) = net(x.to(where))
        return torch.autograd.grad([out, h, c][which].square().sum(), list(net.parameters()))

    for a, b in zip(grads(device), grads("cpu")):
        close(a, b, torch.float32)


def test_layouts(device):
    """Arguments that are not dense."""
    torch.manual_seed(0)
    net = torch.nn.GRU(INPUT, HIDDEN, 2)
    wide = torch.randn(STEPS, 2 * BATCH, 2 * INPUT)
    h = torch.randn(BATCH, 2, HIDDEN)

    def outs(where):
        x = wide.to(where)[:, ::2, 1::2].requires_grad_()
        out, last = net.to(where)(x, h.to(where).transpose(0, 1))
        return [out, last, *torch.autograd.grad(out.square().sum() + last.sum(), [x])]

    for a, b in zip(outs(device), outs("cpu")):
        close(a, b, torch.float32)


def test_backward_twice(device):
    torch.manual_seed(0)
    net = torch.nn.LSTM(INPUT, HIDDEN).to(device)
    x = torch.randn(STEPS, BATCH, INPUT).to(device)
    loss = net(x)[0].square().sum()
    first = torch.autograd.grad(loss, list(net.parameters()), retain_graph=True)
    second = torch.autograd.grad(loss, list(net.parameters()))
    for a, b in zip(first, second):
        assert torch.equal(a, b) and not a.isnan().any()
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(loss, list(net.parameters()))


def test_changed_weight_is_seen(device):
    net = torch.nn.GRU(INPUT, HIDDEN).to(device)
    x = torch.ones(STEPS, BATCH, INPUT, device=device)
    out = net(x)[0]
    with torch.no_grad():
        net.weight_hh_l0.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    assert not torch.equal(net(x)[0], out)


def test_second_derivatives(device):
    net = torch.nn.LSTM(INPUT, HIDDEN).to(device)
    x = torch.randn(STEPS, BATCH, INPUT).to(device).requires_grad_()

    def second():
        (g,) = torch.autograd.grad(net(x)[0].square().sum(), [x], create_graph=True)
        return torch.autograd.grad(g.square().sum(), [x])

    with torch.backends.cudnn.flags(enabled=False):
        second()
    if device == "cuda" and by_cudnn():
        with pytest.raises(NotImplementedError, match="Double backwards is not supported"):
            second()


def test_cudnn_is_used_and_can_be_turned_off(device):
    net = torch.nn.LSTM(INPUT, HIDDEN, 2).to(device)
    x = torch.randn(STEPS, BATCH, INPUT).to(device)
    name = net(x)[0].grad_fn.name()
    with torch.backends.cudnn.flags(enabled=False):
        steps = net(x)[0].grad_fn.name()
    assert "Cudnn" not in steps
    assert ("Cudnn" in name) == (device == "cuda" and by_cudnn())


def test_dropout(device):
    torch.manual_seed(0)
    net = torch.nn.LSTM(INPUT, HIDDEN, 3, dropout=0.5).to(device)
    x = torch.randn(STEPS, BATCH, INPUT).to(device)

    def drawn(seed):
        torch.manual_seed(seed)
        return net(x)[0]

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    drawn(1).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
    net.eval()
    assert torch.equal(drawn(1), drawn(2))
    close(drawn(1), net.cpu()(x.cpu())[0], torch.float32)
    # All of it: what comes from below is zeros.
    whole = torch.nn.GRU(INPUT, HIDDEN, 2, dropout=1.0).to(device)
    assert torch.equal(whole(x)[0], whole(x * 2)[0])


def test_autocast(device):
    torch.manual_seed(0)
    net = torch.nn.LSTM(INPUT, HIDDEN).to(device)
    x = torch.randn(STEPS, BATCH, INPUT).to(device)
    plain = net(x)[0]
    with torch.autocast(device, dtype=torch.bfloat16):
        out = net(x)[0]
    close(out, plain, torch.bfloat16)
    out.float().sum().backward()
    assert net.weight_ih_l0.grad.dtype == torch.float32
    if device == "cuda" and by_cudnn():
        assert out.dtype == torch.bfloat16


def test_operators_by_themselves(device):
    """torch.lstm and the others, as PyTorch has them."""
    torch.manual_seed(0)
    net = torch.nn.LSTM(INPUT, HIDDEN).to(device)
    x, h = torch.randn(STEPS, BATCH, INPUT).to(device), torch.zeros(1, BATCH, HIDDEN, device=device)
    weights = [p.detach() for p in net.parameters()]
    out, hy, cy = torch.lstm(x, (h, h), weights, True, 1, 0.0, False, False, False)
    wanted, (h2, c2) = net(x)
    assert torch.equal(out, wanted) and torch.equal(hy, h2) and torch.equal(cy, c2)
    with pytest.raises(RuntimeError, match="weights"):
        torch.lstm(x, (h, h), weights[:3], True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="hidden states"):
        torch.lstm(x, (h[:, :2], h), weights, True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="batch_sizes"):
        sizes = torch.tensor([2, 3])
        torch.lstm(x[0], sizes, (h, h), weights, True, 1, 0.0, False, False)
