"""Progress bars, averaged models, choices of kernels, and what is only mentioned."""

import io

import pytest

import tessera as torch
from tessera import nn
from tessera.optim import swa_utils
from tessera.utils.progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_shows_itself_on_a_terminal():
    out = Terminal()
    bar = progress(range(4), "train", file=out, interval=0)
    seen = []
    for i in bar:
        seen.append(i)
        bar.set_postfix(loss=0.123456, step=i)
    assert seen == [0, 1, 2, 3] and len(bar) == 4
    lines = out.getvalue().split("\r")
    assert lines[-1].startswith("train: 100% [########################], 4/4, ")
    # Spaces cover what is left of a longer line before it.
    assert lines[-1].endswith("\n") and "50%" in lines[2]
    assert lines[-1].rstrip().endswith("loss=0.1235, step=3")
    assert out.getvalue().count("\n") == 1


def test_progress_is_quiet_elsewhere():
    out = io.StringIO()
    assert list(progress(range(3), file=out, interval=0)) == [0, 1, 2]
    assert out.getvalue() == ""


def test_progress_without_a_length():
    out = Terminal()
    with progress(desc="files", unit="file", file=out, interval=0) as bar:
        bar.update(3)
        with pytest.raises(TypeError):
            len(bar)
    assert "files: 3 file, 00:00 passed" in out.getvalue()
    assert progress([], file=io.StringIO()).text().startswith("0 it")


def test_progress_ends_its_line_on_errors():
    out = Terminal()
    with pytest.raises(ZeroDivisionError):
        for i in progress(range(3), file=out, interval=0):
            1 / (i - 1)
    assert out.getvalue().endswith("\n")


def test_the_model_zoo_is_only_mentioned():
    from tessera.utils.model_zoo import load_url

    with pytest.raises(NotImplementedError, match="torch.utils.model_zoo.load_url"):
        load_url("")


def test_kernels_of_attention():
    from tessera.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH), sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
        pass
    with pytest.raises(AssertionError, match="SDPBackend"):
        with sdpa_kernel("math"):
            pass


def values(model):
    return [p.tolist() for p in model.parameters()]


def test_averaged_model(device):
    model = nn.Linear(1, 1).to(device)
    averaged = swa_utils.AveragedModel(model)
    assert averaged.module is not model
    weights = []
    for w in (1.0, 2.0, 6.0):
        with torch.no_grad():
            model.weight.fill_(w)
        averaged.update_parameters(model)
        weights.append(averaged.module.weight.item())
    assert weights == pytest.approx([1, 1.5, 3]) and averaged.n_averaged.item() == 3
    assert averaged(torch.ones(1, 1, device=device)).shape == (1, 1)
    assert "n_averaged" in averaged.state_dict()


@pytest.mark.parametrize("many", [True, False])
def test_exponential_averages(many):
    model = nn.Linear(1, 1, bias=False)
    options = (
        {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)}
        if many
        else {"avg_fn": swa_utils.get_ema_avg_fn(0.9)}
    )
    averaged = swa_utils.AveragedModel(model, **options)
    for w in (1.0, 2.0):
        with torch.no_grad():
            model.weight.fill_(w)
        averaged.update_parameters(model)
    assert averaged.module.weight.item() == pytest.approx(1.1)
    with pytest.raises(ValueError, match="Invalid decay value 2"):
        swa_utils.get_ema_multi_avg_fn(2)


def test_update_bn():
    model = nn.Sequential(nn.BatchNorm1d(1)).eval()
    data = [torch.tensor([[1.0], [3.0]]), torch.tensor([[5.0], [7.0]])]
    swa_utils.update_bn(data, model)
    assert model[0].running_mean.item() == pytest.approx(4) and not model.training
    assert model[0].momentum == 0.1
    swa_utils.update_bn([], nn.Linear(1, 1))


def test_averages_of_buffers():
    model = torch.nn.BatchNorm1d(2)
    plain = swa_utils.AveragedModel(model, use_buffers=True)
    decay = swa_utils.get_ema_multi_avg_fn(0.5)
    exponential = swa_utils.AveragedModel(model, multi_avg_fn=decay, use_buffers=True)
    for i in range(3):
        model.running_mean.fill_(float(i))
        model.num_batches_tracked.fill_(3 * i)
        for averaged in (plain, exponential):
            averaged.update_parameters(model)
    assert plain.n_averaged.item() == 3
    assert plain.module.running_mean.tolist() == [1.0, 1.0]
    # Of integers a mean without its fraction, at each step.
    assert plain.module.num_batches_tracked.item() == 2
    assert exponential.module.running_mean.tolist() == [1.25, 1.25]
    assert exponential.module.num_batches_tracked.item() == 3
