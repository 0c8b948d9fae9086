"""autocast: which operators run in which precision, and when."""

import json
from itertools import product
from pathlib import Path

import pytest
from record_autocast import EXPRESSIONS, VARIANTS, dtypes, expression_dtypes
from record_oracle import find

import tessera as torch
from tessera import nn

DATA = Path(__file__).parent / "data"


def test_attention_runs_in_lower_precision(device):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 5, 4, device=device, requires_grad=True) for _ in range(3))
    mask = torch.randn(5, 5, device=device)
    for extra in ({}, {"is_causal": True}, {"attn_mask": mask}, {"attn_mask": mask > 0}):
        with torch.autocast(device, dtype=torch.bfloat16):
            out = nn.functional.scaled_dot_product_attention(q, k, v, **extra)
            # Parts in different precisions, as a cache of keys and values may have them.
            mixed = nn.functional.scaled_dot_product_attention(q, k.bfloat16(), v, **extra)
        assert out.dtype == mixed.dtype == torch.bfloat16
        halves = {n: m.bfloat16() if m is mask else m for n, m in extra.items()}
        plain = nn.functional.scaled_dot_product_attention(
            q.bfloat16(), k.bfloat16(), v.bfloat16(), **halves
        )
        assert torch.equal(out, plain) and torch.equal(mixed, plain)
        got = torch.autograd.grad(out.float().sum(), (q, k, v))
        wanted = torch.autograd.grad(plain.float().sum(), (q, k, v))
        for a, b in zip(got, wanted):
            assert a.dtype == torch.float32 and torch.equal(a, b)


# Where our dtypes differ from PyTorch's, by device. The fake tensors that PyTorch's answers for
# GPUs come from take some operators apart in Python, beneath autocast.
OTHERWISE = {
    "cpu": {
        "pad": "a border is copied: nothing is gained by float32",
        "local_response_norm": "pads and takes means without float32 in between",
    },
    "cuda": {
        "ldexp": "fake",
        "mvlgamma": "fake",
        "affine_grid_generator": "fake",
        "cov": "fake",
        "corrcoef": "fake",
        "nll_loss": "fake",
        "grid_sampler": "fake",
        "inner": "0-d tensors of two dtypes",
    },
}


def test_dtypes_are_those_of_pytorch(device):
    """Of every operator: the recorded ones, all others as without autocast."""
    answers = json.loads((DATA / "autocast.json").read_text())[device]
    wrong, checked = [], 0
    for op in torch._C.all_ops():
        if op["name"] in OTHERWISE[device]:
            continue
        function = find(torch, op)
        for sample, variant in product(op["samples"][:3], VARIANTS):
            name = f"{op['name']}|{sample}|{variant}"
            wanted = answers.get(name)
            plain = dtypes(torch, function, sample, device, variant, False)
            if wanted == "?" or plain == []:
                continue
            wanted = ",".join(plain or ["raises"]) if wanted is None else wanted
            got = dtypes(torch, function, sample, device, variant, True)
            got = got if isinstance(got, str) else ",".join(got or ["raises"])
            checked += 1
            if got != wanted:
                wrong.append(f"{name}: {got}, not {wanted}")
    assert not wrong, "\n".join(wrong)
    assert checked > 2000


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text, device):
    wanted = json.loads((DATA / "autocast.json").read_text())[device].get(text)
    if wanted == "?":
        pytest.skip("PyTorch raises")
    assert expression_dtypes(torch, text, device) == wanted


# ---- the weights' casts ----------------------------------------------------------------------


def weight(device, n=4):
    torch.manual_seed(1)
    return nn.Parameter(torch.randn(n, n).to(device))


def casts(device, fill):
    """How many casts of weights run within a region, by what the autograd graph has of them."""
    w = weight(device)
    x = torch.ones(2, 4, device=device)
    seen = []
    with torch.autocast(device, dtype=torch.bfloat16):
        fill(w, x, lambda: seen.append(x.mm(w).grad_fn.next_functions[1][0]))
    return seen


def test_a_weight_is_cast_once(device):
    first, second = casts(device, lambda w, x, use: (use(), use()))
    assert first == second
    with_cache_off = torch.autocast(device, dtype=torch.bfloat16, cache_enabled=False)

    def twice(w, x, use):
        with with_cache_off:
            assert not torch.is_autocast_cache_enabled()
            use()
            use()

    first, second = casts(device, twice)
    assert first != second
    assert torch.is_autocast_cache_enabled()


@pytest.mark.parametrize("change", ["add_", "data", "optimizer", "set", "numpy"])
def test_a_weight_changed_within_the_region_is_cast_again(change, device):
    if change == "numpy" and device != "cpu":
        pytest.skip("NumPy sees the CPU's memory only")
    w = weight(device)
    x = torch.ones(2, 4, device=device)
    seen = w.detach().numpy() if change == "numpy" else None
    with torch.autocast(device, dtype=torch.bfloat16):
        before = x.mm(w)
        if change == "add_":
            with torch.no_grad():
                w.add_(1)
        elif change == "data":
            w.data.add_(1)
        elif change == "set":
            w.data = w.data + 1
        elif change == "numpy":
            seen += 1
        else:
            w.grad = torch.full_like(w, -1)
            torch.optim.SGD([w], lr=1.0).step()
        after = x.mm(w)
    assert torch.equal(after, x.bfloat16().mm(w.bfloat16()))
    assert not torch.equal(before, after)


def test_casts_made_without_gradients_are_not_those_with(device):
    """PyTorch loses the gradient here."""
    w = weight(device)
    x = torch.ones(2, 4, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        with torch.no_grad():
            assert not x.mm(w).requires_grad
        y = x.mm(w)
        with torch.inference_mode():
            x.mm(w)
        z = x.mm(w)
    (y + z).sum().backward()
    assert w.grad.tolist() == [[4.0] * 4] * 4


def test_a_training_loop_within_one_region(device):
    """Forward, backward and step, all inside: every step sees the weights as they are."""

    def train(inside):
        model = nn.Linear(4, 1, bias=False).to(device)
        with torch.no_grad():
            model.weight.copy_(torch.tensor([[0.5, -0.25, 1.0, 2.0]]))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
        x = torch.eye(4, device=device)
        outer = torch.autocast(device, dtype=torch.bfloat16, enabled=inside)
        with outer:
            for _ in range(5):
                with torch.autocast(device, dtype=torch.bfloat16):
                    loss = model(x).float().square().sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return model.weight

    assert torch.equal(train(True), train(False))


def test_the_end_of_the_region_lets_go(device):
    import gc
    import weakref

    w = weight(device)
    gone = weakref.ref(w)
    with torch.autocast(device, dtype=torch.bfloat16):
        with torch.no_grad():
            torch.ones(2, 4, device=device).mm(w)
        torch.clear_autocast_cache()
        del w
        gc.collect()
        assert gone() is None
        w = weight(device)
        gone = weakref.ref(w)
        with torch.no_grad():
            torch.ones(2, 4, device=device).mm(w)
        del w
    gc.collect()
    assert gone() is None


def test_a_long_region_lets_go_of_what_nobody_has(device):
    import weakref

    x = torch.ones(1, 2, device=device)
    gone = []
    with torch.autocast(device, dtype=torch.bfloat16), torch.no_grad():
        for _ in range(5000):
            w = nn.Parameter(torch.ones(2, 2, device=device))
            gone.append(weakref.ref(w))
            x.mm(w)
        del w
        assert sum(g() is None for g in gone) > 4000


def test_casts_belong_to_a_stream_and_to_no_graph(cuda):
    w = weight(cuda)
    x = torch.ones(2, 4, device=cuda)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        with torch.autocast(cuda, dtype=torch.bfloat16):
            x.mm(w)  # a cast that the graph may not use
            with torch.cuda.graph(graph):
                y = x.mm(w)
            after = x.mm(w)  # and not one that only a replay makes
        assert torch.equal(after, x.bfloat16().mm(w.bfloat16()))
        w.add_(1)
        graph.replay()
        assert torch.equal(y, x.bfloat16().mm(w.bfloat16()))


# ---- the region ------------------------------------------------------------------------------


def test_regions_nest(device):
    x = torch.ones(2, 2, device=device)
    other = torch.float16
    assert not torch.is_autocast_enabled(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        assert torch.is_autocast_enabled(device)
        assert torch.get_autocast_dtype(device) == x.mm(x).dtype == torch.bfloat16
        with torch.autocast(device, enabled=False):
            assert x.mm(x).dtype == torch.float32
            with torch.autocast(device, dtype=other):
                assert x.mm(x).dtype == other
            assert x.mm(x).dtype == torch.float32
        assert x.mm(x).dtype == torch.bfloat16
        with pytest.raises(ZeroDivisionError), torch.autocast(device, dtype=other):
            raise ZeroDivisionError
        assert x.mm(x).dtype == torch.bfloat16
    assert x.mm(x).dtype == torch.float32


def test_defaults_and_other_spellings(device):
    x = torch.ones(2, 2, device=device)
    usual = {"cpu": torch.bfloat16, "cuda": torch.float16}[device]
    assert torch.get_autocast_dtype(device) == usual

    @torch.autocast(device)
    def product():
        return x.mm(x)

    assert product().dtype == usual == torch.autocast(device).fast_dtype
    old = {"cpu": torch.cpu.amp, "cuda": torch.cuda.amp}[device]
    with old.autocast():
        assert x.mm(x).dtype == usual
    with old.autocast(enabled=False):
        assert x.mm(x).dtype == torch.float32
    with old.autocast(dtype=torch.bfloat16):
        assert x.mm(x).dtype == torch.bfloat16
    with torch.amp.autocast(device_type=device):
        assert x.mm(x).dtype == usual
    scaler = old.GradScaler(init_scale=8.0)
    assert scaler.get_scale() == 8.0 and scaler.is_enabled()
    assert isinstance(scaler, torch.amp.GradScaler)
    assert torch.amp.is_autocast_available("cuda") and not torch.amp.is_autocast_available("meta")
    assert torch.is_autocast_cpu_enabled() is False
    assert torch.get_autocast_cpu_dtype() == torch.bfloat16
    assert torch.get_autocast_gpu_dtype() == torch.float16


def test_wrong_regions():
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'meta'"):
        torch.autocast("meta")
    with pytest.raises(ValueError, match="`device_type` of type `str`"):
        torch.autocast(torch.float16)
    with pytest.warns(UserWarning, match="CPU autocast, but the target dtype is not supported"):
        region = torch.autocast("cpu", dtype=torch.float32)
    with region:
        assert not torch.is_autocast_enabled("cpu")
    if not torch.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available"):
            torch.autocast("cuda")


def test_it_is_one_threads(device):
    import threading

    x = torch.ones(2, 2, device=device)
    seen = []
    with torch.autocast(device, dtype=torch.bfloat16):
        thread = threading.Thread(target=lambda: seen.append(x.mm(x).dtype))
        thread.start()
        thread.join()
    assert seen == [torch.float32]


def test_binary_cross_entropy_is_refused_on_gpus(accelerator):
    p = torch.rand(3, device=accelerator)
    with torch.autocast(accelerator):
        with pytest.raises(RuntimeError, match="unsafe to autocast(.|\n)*with_logits"):
            nn.BCELoss()(p, p)
        with torch.autocast(accelerator, enabled=False):
            nn.BCELoss()(p, p)


def test_networks_that_recur(device):
    """Weights, inputs and states are cast together; gradients come back in float32."""
    torch.manual_seed(0)
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        net = kind(3, 4, num_layers=2).to(device)
        x = torch.randn(5, 2, 3, device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            out, _ = net(x)
        plain, _ = net(x)
        assert out.dtype == (torch.float32 if (kind, device) == (nn.GRU, "cpu") else torch.bfloat16)
        torch.testing.assert_close(out.float(), plain, rtol=0.05, atol=0.02)
        out.float().sum().backward()
        assert all(p.grad.dtype == torch.float32 for p in net.parameters())


def test_backward_within_the_region(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)).to(device)
    x = torch.randn(3, 4, device=device)
    grads = []
    for inside in (False, True):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = model(x).float().pow(2).mean()
        model.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=inside):
            loss.backward()
        grads.append([p.grad for p in model.parameters()])
    for a, b in zip(*grads):
        assert a.dtype == b.dtype == torch.float32
        torch.testing.assert_close(a, b, rtol=0.03, atol=0.02)
