"""Calls that PyTorch refuses: the same exception class, and the message that says why."""

import copy
import subprocess
import sys

import pytest

import tessera as torch
from tessera import nn
from tessera.nn import functional as F


def refused(call, kind, message):
    with pytest.raises(kind) as raised:
        call()
    assert message in str(raised.value)


# In a process of its own with a limit: without the check it ends by a signal or not at all.
ALONE = {
    "conv1d with a kernel of size 0": (
        "torch.conv1d(torch.ones(1, 2, 5), torch.ones(3, 2, 0, requires_grad=True))"
        ".sum().backward()",
        "kernel size should be greater than zero, but got kernel_height: 1 kernel_width: 0",
    ),
    "conv_transpose2d with a kernel of size 0": (
        "torch.conv_transpose2d(torch.ones(1, 2, 5, 5), torch.ones(2, 3, 0, 1))",
        "kernel size should be greater than zero, but got kernel_height: 0 kernel_width: 1",
    ),
    "conv1d with a padding beyond 64 bits": (
        "torch.conv1d(torch.ones(2, 2, 5), torch.ones(4, 1, 2), None, 2, 2**63 - 1, 1, 2)",
        "expected padding to be at most",
    ),
    "native_group_norm of another size": (
        "torch.native_group_norm(torch.ones(1, 1, 1), None, None, 4, 3, 7, 3, 1e-5)",
        "Expected X.numel() == N * C * HxW to be true",
    ),
    "vander of many powers": ("torch.vander(torch.ones(3), N=2**31 - 1)", ""),
    "vander beyond 64 bits": ("torch.vander(torch.ones(3), N=2**62)", "overflow"),
    "linalg.vander of many powers": (
        "torch.linalg.vander(torch.ones(3), N=2**62)",
        "overflow",
    ),
    "svd_lowrank of many vectors": ("torch.svd_lowrank(torch.ones(3, 3), 2**62)", "overflow"),
    "svd_lowrank of many iterations": ("torch.svd_lowrank(torch.ones(3, 3), 2, 2**62)", "niter"),
    "interpolate to a size without memory": (
        "torch.nn.functional.interpolate(torch.ones(1, 1, 4), size=2**40)",
        "",
    ),
    "lu_solve with pivots beyond the matrix": (
        "torch.linalg.lu_solve(torch.eye(3), torch.full((3,), 100, dtype=torch.int32), "
        "torch.ones(3, 1))",
        "pivots must be between 1 and 3",
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_is_refused_at_once(name, device):
    if device != "cpu":
        pytest.skip("arguments are checked before a device is involved")
    call, message = ALONE[name]
    program = (
        "import resource, tessera as torch\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        f"try:\n    {call}\nexcept (RuntimeError, ValueError, MemoryError) as e:\n"
        "    print('refused:', e)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0 and ran.stdout.startswith("refused:"), (ran.returncode, ran.stderr)
    assert message in ran.stdout


def test_transposed_convolutions_of_nothing(device):
    x, w = torch.ones(2, 3, 0, device=device), torch.ones(3, 2, 4, device=device)
    text = "Only zero batch or zero channel inputs are supported, but got input shape: [2, 3, 0]"
    refused(lambda: torch.conv_transpose1d(x, w, stride=2), RuntimeError, text)
    some = torch.ones(0, 3, 5, device=device, requires_grad=True)
    weight = w.requires_grad_()
    torch.conv_transpose1d(some, weight).sum().backward()
    assert not weight.grad.any() and some.grad.shape == some.shape


def test_size_and_stride_of_none(device):
    t = torch.ones(3, 2, device=device)
    assert t.size(None) == t.size(dim=None) == (3, 2) and t.stride(None) == (2, 1)
    assert t.size(1) == 2 and t.stride(dim=0) == 2
    with pytest.raises(TypeError, match="must be int"):
        t.size("x")


def test_cells_do_not_broadcast_states(device):
    x = torch.ones(4, 2, device=device)
    one, wide, good = (torch.ones(s, device=device) for s in ((1, 3), (4, 1), (4, 3)))
    for cell in (nn.RNNCell, nn.GRUCell):
        m = cell(2, 3).to(device)
        refused(
            lambda m=m: m(x, one),
            RuntimeError,
            "Input batch size 4 doesn't match hidden0 batch size 1",
        )
        refused(
            lambda m=m: m(x, wide),
            RuntimeError,
            "hidden0 has inconsistent hidden_size: got 1, expected 3",
        )
        refused(
            lambda m=m: m(x, good[0]), RuntimeError, "Expected 2D hidden0 (batch x hidden_size)"
        )
        refused(
            lambda m=m: m(good), RuntimeError, "input has inconsistent input_size: got 3 expected 2"
        )
    m = nn.LSTMCell(2, 3).to(device)
    for states, message in (
        ((one, good), "Input batch size 4 doesn't match hidden0 batch size 1"),
        ((good, one), "Input batch size 4 doesn't match hidden1 batch size 1"),
        ((good, wide), "hidden1 has inconsistent hidden_size: got 1, expected 3"),
    ):
        refused(lambda s=states: m(x, s), RuntimeError, message)
    m = nn.LSTM(2, 3).to(device)
    h = torch.ones(1, 2, 3, device=device)
    weights = [m.weight_ih_l0, m.weight_hh_l0]
    with pytest.raises(RuntimeError, match="cell state of width 3"):
        torch.lstm(
            torch.ones(4, 2, 2, device=device),
            [h, h[:, :, :1]],
            weights,
            False,
            1,
            0.0,
            False,
            False,
            False,
        )


def test_norms_over_one_value(device):
    x = torch.ones(1, 2, device=device)
    text = "Expected more than 1 value per channel when training, got input size [1, 2]"
    refused(lambda: F.group_norm(x, 2), ValueError, text)
    refused(lambda: nn.GroupNorm(2, 2).to(device)(x), ValueError, text)
    with pytest.raises(ZeroDivisionError):
        F.group_norm(x, 0)
    assert torch.group_norm(x, 2).shape == (1, 2)  # has no such check in PyTorch either
    assert F.group_norm(torch.ones(1, 4, device=device), 2).shape == (1, 4)
    assert F.group_norm(torch.ones(0, 4, device=device), 4).shape == (0, 4)


def test_norms_of_mixed_dtypes(device):
    where = "mixed dtype (CPU)" if device == "cpu" else "mixed dtype"
    double = torch.ones(2, 3, dtype=torch.float64, device=device)
    share = f"{where}: all inputs must share same datatype."
    expect = f"{where}: expect parameter to have scalar type of Float"
    layers = (
        nn.BatchNorm1d(3),
        nn.BatchNorm1d(3).eval(),
        nn.BatchNorm1d(3, affine=False),
        nn.LayerNorm(3),
        nn.GroupNorm(1, 3),
    )
    for m in layers:
        refused(lambda m=m: m.to(device)(double), RuntimeError, share)
        if list(m.parameters()):
            refused(lambda m=m: m.double()(double.float()), RuntimeError, expect)
    volume = torch.ones(2, 3, 4, dtype=torch.float64, device=device)
    refused(lambda: nn.InstanceNorm1d(3, affine=True).to(device)(volume), RuntimeError, share)
    half = torch.ones(2, 3, dtype=torch.float16, device=device)
    assert nn.BatchNorm1d(3).to(device)(half).dtype == torch.float16
    with pytest.raises(RuntimeError, match="weight should contain 6 elements not 4"):
        F.instance_norm(torch.ones(2, 3, 4, device=device), weight=torch.ones(2, device=device))


def test_losses_of_integer_targets(device):
    x, t = torch.ones(3, device=device), torch.ones(3, dtype=torch.int64, device=device)
    refused(
        lambda: nn.BCEWithLogitsLoss()(x, t),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
    )
    with pytest.raises(NotImplementedError, match="two bool tensors"):
        nn.BCEWithLogitsLoss()(x, t.bool())
    with pytest.raises(NotImplementedError, match="log_sigmoid_cpu"):
        nn.BCEWithLogitsLoss()(t, x)
    with pytest.raises(RuntimeError, match="Found dtype Long but expected Float"):
        nn.BCELoss()(x, t)
    rows = torch.ones(3, 2, device=device)
    with pytest.raises(RuntimeError, match="expected target dtype to be Long or Byte, but got Int"):
        F.nll_loss(rows, t.int())


def test_masks_must_be_boolean(device):
    x, mask = torch.ones(3, device=device), torch.ones(3, dtype=torch.uint8, device=device)
    refused(lambda: torch.masked_select(x, mask), RuntimeError, "expected BoolTensor for mask")
    refused(lambda: x.masked_fill(mask, 2), RuntimeError, "only supports boolean masks")
    refused(lambda: x.masked_scatter(mask, x), RuntimeError, "only supports boolean masks")


def made_in_inference_mode(device):
    with torch.inference_mode():
        return torch.ones(3, device=device)


WRITES = {
    "add_": lambda x: x.add_(1),
    "index": lambda x: x.__setitem__(0, 1),
    "zero_": lambda x: x.zero_(),
    "copy_": lambda x: x.copy_(torch.zeros(3)),
    "uniform_": lambda x: x.uniform_(),
    "resize_": lambda x: x.resize_(4),
    "out": lambda x: torch.add(x.clone(), 1, out=x),
    "reduction out": lambda x: torch.cumsum(x.clone(), 0, out=x),
    "view": lambda x: x.view(3).add_(1),
    "relu": lambda x: F.relu(x, inplace=True),
    "foreach": lambda x: torch._foreach_add_([x], 1),
}


@pytest.mark.parametrize("name", WRITES)
def test_inference_tensors_are_not_written_outside_the_mode(name, device):
    x = made_in_inference_mode(device)
    refused(lambda: WRITES[name](x), RuntimeError, "Inplace update to inference tensor outside")
    with torch.no_grad():
        refused(lambda: WRITES[name](x), RuntimeError, "Inplace update to inference tensor")
    with torch.inference_mode():
        WRITES[name](x)


def test_inference_tensors_are_not_saved_for_backward(device):
    x, w = made_in_inference_mode(device), torch.ones(3, requires_grad=True, device=device)
    text = "Inference tensors cannot be saved for backward"
    refused(lambda: x * w, RuntimeError, text)
    refused(lambda: w.clone().mul_(x), RuntimeError, text)
    refused(lambda: w[x.long() * 0] * x.detach(), RuntimeError, text)
    (x + w).sum().backward()  # saves nothing
    (x.clone() * w).sum().backward()
    with torch.no_grad():
        assert (x * w).tolist() == [1.0] * 3
    refused(lambda: x.requires_grad_(), RuntimeError, "Setting requires_grad=True on inference")
    refused(lambda: nn.Parameter(x), RuntimeError, "Setting requires_grad=True on inference")
    refused(lambda: x._version, RuntimeError, "Inference tensors do not track version counter.")


def test_which_tensors_are_of_inference_mode(device):
    x, normal = made_in_inference_mode(device), torch.ones(3, device=device)
    assert x.is_inference() and torch.is_inference(x)
    for other in (x.view(3), x[0], x.detach(), x.data, x.contiguous(), x.reshape(3)):
        assert other.is_inference()
    for other in (x.clone(), x + 1, torch.stack([x, x]), copy.deepcopy(normal)):
        assert not other.is_inference()
    x.data.add_(1)  # as in PyTorch
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        assert not any(t.is_inference() for t in (normal, normal[0], normal.detach()))
        assert (normal + 1).is_inference() and not normal.add_(1).is_inference()
        with torch.inference_mode(False):
            assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
            assert not torch.ones(2, device=device).is_inference()
        assert torch.is_inference_mode_enabled()
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
    normal.requires_grad_().mul(2).sum().backward()


NEGATIVE = {
    "leaky_relu_": (lambda x: F.leaky_relu_(x, -0.5), "In-place leakyReLu backward"),
    "leaky_relu": (lambda x: F.leaky_relu(x, -0.5, inplace=True), "In-place leakyReLu backward"),
    "nan": (lambda x: F.leaky_relu_(x, float("nan")), "In-place leakyReLu backward"),
    "elu_": (lambda x: F.elu_(x, -0.5), "In-place elu backward"),
    "celu_": (lambda x: F.celu_(x, -0.5), "In-place elu backward"),
    "rrelu_": (lambda x: F.rrelu_(x, -0.5, -0.5), "In-place leakyReLu backward"),
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_in_place_activations_of_a_negative_slope(name, device):
    write, text = NEGATIVE[name]
    y = write((-torch.ones(3, requires_grad=True, device=device)).clone())
    refused(lambda: y.sum().backward(), RuntimeError, text)
    x = -torch.ones(3, requires_grad=True, device=device)
    F.leaky_relu_(x.clone(), 0.0).sum().backward()
    F.leaky_relu(x, -0.5).sum().backward()


OUT = {
    "all": lambda x, o: torch.all(x, out=o),
    "any": lambda x, o: torch.any(x, 0, out=o),
    "isin": lambda x, o: torch.isin(x, x, out=o),
    "softmax": lambda x, o: torch.softmax(x, 0, out=o),
    "tril": lambda x, o: torch.tril(x, out=o),
    "inverse": lambda x, o: torch.inverse(x, out=o),
    "vector_norm": lambda x, o: torch.linalg.vector_norm(x, out=o),
    "addmm": lambda x, o: torch.addmm(x, x, x, out=o),
    "scatter_add": lambda x, o: torch.scatter_add(x, 0, (x * 0).long(), x, out=o),
    "where": lambda x, o: torch.where(x > 0, x, x, out=o),
    "masked_select": lambda x, o: torch.masked_select(x, x > 0, out=o),
    "quantile": lambda x, o: torch.quantile(x, 0.5, out=o),
    "signbit": lambda x, o: torch.signbit(x, out=o),
}


@pytest.mark.parametrize("name", OUT)
def test_outputs_of_another_dtype(name, device):
    x = torch.eye(2, device=device)
    out = torch.empty(0, dtype=torch.float64, device=device)
    text = {
        "all": "all only supports bool tensor for result, got: Double",
        "any": "any only supports bool tensor for result, got: Double",
        "isin": "Expected out tensor to have dtype bool, but got double instead",
        "signbit": "Expected out tensor to have dtype bool, but got double instead",
    }.get(name, "Expected out tensor to have dtype float, but got double instead")
    refused(lambda: OUT[name](x, out), RuntimeError, text)


def test_outputs_of_any_may_be_bool_or_uint8(device):
    x = torch.ones(3, dtype=torch.uint8, device=device)
    for dtype in (torch.bool, torch.uint8):
        out = torch.empty((), dtype=dtype, device=device)
        assert torch.any(x, 0, out=out).item() == 1 and torch.all(x.float(), out=out).item() == 1


def test_indices_out_of_range_name_their_dimension(device):
    x = torch.ones(3, 4, 5, device=device)
    for index, text in (
        ((0, 5), "index 5 is out of bounds for dimension 1 with size 4"),
        ((0, -5), "index -5 is out of bounds for dimension 1 with size 4"),
        ((0, 0, 9), "index 9 is out of bounds for dimension 2 with size 5"),
        ((None, 0, 5), "index 5 is out of bounds for dimension 2 with size 4"),
        ((slice(None), 5), "index 5 is out of bounds for dimension 1 with size 4"),
        (3, "index 3 is out of bounds for dimension 0 with size 3"),
    ):
        refused(lambda i=index: x[i], IndexError, text)
        refused(lambda i=index: x.__setitem__(i, 1), IndexError, text)
    text = "select(): index 5 out of range for tensor of size [3, 4, 5] at dimension 0"
    refused(lambda: x.select(0, 5), IndexError, text)
    refused(lambda: x[::0], ValueError, "slice step cannot be zero")


def test_convolutions_name_all_sizes(device):
    x = torch.ones(1, 2, 5, 5, device=device)
    w = torch.ones(3, 2, 7, 7, device=device)
    text = "Calculated padded input size per channel: (5 x 5). Kernel size: (7 x 7)."
    refused(lambda: torch.conv2d(x, w), RuntimeError, text)
    text = "dilation should be greater than zero, but got [0, 0]"
    refused(lambda: torch.conv2d(x, w, dilation=0), RuntimeError, text)
    text = "kernel size should be greater than zero, but got: 0 x 1 x 2 (TxHxW)"
    volume = torch.ones(1, 2, 5, 5, 5, device=device)
    refused(
        lambda: torch.conv3d(volume, torch.ones(3, 2, 0, 1, 2, device=device)), RuntimeError, text
    )
    small = torch.ones(1, 2, 1, 1, device=device)
    text = (
        "Given input size per channel: (1 x 1). Calculated output size per channel: (-4 x -4). "
        "Output size is too small"
    )
    kernel = torch.ones(2, 2, 2, 2, device=device)
    refused(lambda: torch.conv_transpose2d(small, kernel, padding=3), RuntimeError, text)
    text = (
        "output padding must be smaller than either stride or dilation, but got "
        "output_padding_height: 3 output_padding_width: 3 stride_height: 1 stride_width: 1 "
        "dilation_height: 1 dilation_width: 1"
    )
    refused(lambda: torch.conv_transpose2d(x, kernel, output_padding=3), RuntimeError, text)


PRIVATE = {
    "_row_norm": lambda t: torch._C.ops["_row_norm"](t, None, None, 3, 1, 5, True, 1e-5),
    "_batch_norm": lambda t: torch._C.ops["_batch_norm"](t, None, None, t[0, :1], t[0], True),
    "_conv_backward_input": lambda t: torch._C.ops["_conv_backward_input"](
        t[None], t[None], [1, 3, 9], [1], [0], [1], 0
    ),
    "_mm_bias": lambda t: torch._C.ops["_mm_bias"](t, t, t[0]),
    "_cdist": lambda t: torch._C.ops["_cdist"](t, t, 2.0),
    "_nll_loss": lambda t: torch._C.ops["_nll_loss"](t[None], t, None, -100, 7),
    "_fft_r2c": lambda t: torch._C.ops["_fft_r2c"](t, [2], 0),
    "_as_strided": lambda t: torch._C.ops["_as_strided"](t, [2**40], [1], 0, [3, 1]),
    "_solve_triangular": lambda t: torch._C.ops["_solve_triangular"](t, t, True, True, False),
    "_softmax_backward": lambda t: torch._C.ops["_softmax_backward"](t, t[0], 0),
    "_pool_gather": lambda t: torch._C.ops["_pool_gather"](t, t.long(), [9, 9], 2),
    "_resample": lambda t: torch._C.ops["_resample"](t, 5, t[0].long(), t),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_private_operators_check_their_arguments(name, device):
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        PRIVATE[name](torch.ones(2, 3, device=device))
