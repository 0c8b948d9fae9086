"""Learning rates against PyTorch's, and schedulers' states and refusals."""

import copy
import json
import warnings
from pathlib import Path

import pytest
from schedules import CASES, advance, make, run, state

import tessera as torch
from tessera.optim import lr_scheduler as s

RECORDED = json.loads((Path(__file__).parent / "data" / "schedules.json").read_text())


def sgd(**options):
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, **options)


@pytest.mark.parametrize("case", CASES)
def test_rates(case):
    got = run(torch, case)
    for mine, theirs in zip(got, RECORDED[case]):
        for one, other in zip(mine, theirs):
            assert one == pytest.approx(other, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_going_on_from_a_saved_state(case):
    """Saved after 7 steps and loaded into fresh ones, the rest is the same."""
    o, scheduler = make(torch, case)
    for step in range(7):
        advance(o, scheduler, step)
    saved = copy.deepcopy((o.state_dict(), scheduler.state_dict()))
    o2, scheduler2 = make(torch, case)
    o2.load_state_dict(saved[0])
    scheduler2.load_state_dict(saved[1])
    assert scheduler2.get_last_lr() == scheduler.get_last_lr()
    for step in range(7, 20):
        advance(o, scheduler, step)
        advance(o2, scheduler2, step)
        assert state(o) == state(o2)


def test_last_lr_and_names():
    o = sgd()
    scheduler = s.StepLR(o, 2, 0.5)
    assert scheduler.get_last_lr() == [0.1] and o.param_groups[0]["initial_lr"] == 0.1
    assert isinstance(scheduler, s.LRScheduler) and issubclass(s._LRScheduler, s.LRScheduler)
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        scheduler.get_lr()


def test_order_of_steps():
    scheduler = s.StepLR(sgd(), 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    o = sgd()
    scheduler = s.StepLR(o, 2)
    o.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()


def test_a_step_by_number():
    o = sgd()
    scheduler = s.ExponentialLR(o, 0.5)
    o.step()
    with pytest.warns(UserWarning, match="epoch parameter"):
        scheduler.step(3)
    assert o.param_groups[0]["lr"] == 0.1 * 0.5**3
    restarts = s.CosineAnnealingWarmRestarts(sgd(), 4)
    restarts.step(1.5)
    assert restarts.last_epoch == 1 and restarts.T_cur == 1.5
    restarts.step(9)
    assert restarts.T_cur == 1


def test_resuming():
    with pytest.raises(KeyError, match="initial_lr"):
        s.StepLR(sgd(), 2, last_epoch=3)
    o = sgd()
    o.param_groups[0]["initial_lr"] = 1.0
    assert s.StepLR(o, 2, 0.5, last_epoch=3).last_epoch == 4


def test_a_tensor_as_rate():
    p = torch.zeros(1, requires_grad=True)
    o = torch.optim.SGD([p], lr=torch.tensor(0.5))
    lr = o.param_groups[0]["lr"]
    scheduler = s.ExponentialLR(o, 0.5)
    o.step()
    scheduler.step()
    assert o.param_groups[0]["lr"] is lr and lr.item() == 0.25
    assert float(scheduler.get_last_lr()[0]) == 0.25 and float(scheduler.base_lrs[0]) == 0.5


class Decay:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, epoch):
        return self.factor**epoch


def test_callable_objects_are_saved():
    scheduler = s.LambdaLR(sgd(), Decay(0.5))
    saved = scheduler.state_dict()
    assert saved["lr_lambdas"] == [{"factor": 0.5}]
    other = s.LambdaLR(sgd(), Decay(0.1))
    other.load_state_dict(saved)
    assert other.lr_lambdas[0].factor == 0.5 and saved["lr_lambdas"] == [{"factor": 0.5}]
    assert s.LambdaLR(sgd(), lambda e: 1).state_dict()["lr_lambdas"] == [None]


@pytest.mark.parametrize(
    "act, error, words",
    [
        (lambda o: s.StepLR(5, 1), TypeError, "int is not an Optimizer"),
        (lambda o: s.LambdaLR(o, [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (lambda o: s.LinearLR(o, 0), ValueError, "Starting multiplicative factor"),
        (lambda o: s.LinearLR(o, 0.5, 2), ValueError, "Ending multiplicative factor"),
        (lambda o: s.ConstantLR(o, 2), ValueError, "Constant multiplicative factor"),
        (lambda o: s.ReduceLROnPlateau(o, factor=1), ValueError, "Factor should be < 1.0"),
        (lambda o: s.ReduceLROnPlateau(o, "x"), ValueError, "mode x is unknown"),
        (lambda o: s.CyclicLR(o, 1, [1, 2]), ValueError, "max_lr must have the same length"),
        (lambda o: s.CyclicLR(o, 1, 2, mode="x"), ValueError, "mode is invalid"),
        (lambda o: s.OneCycleLR(o, 1), ValueError, "You must define either total_steps"),
        (lambda o: s.OneCycleLR(o, 1, 0), ValueError, "Expected positive integer total_steps"),
        (lambda o: s.OneCycleLR(o, 1, 5, pct_start=2.0), ValueError, "between 0 and 1 pct_start"),
        (lambda o: s.OneCycleLR(o, 1, 5, anneal_strategy="x"), ValueError, "anneal_strategy"),
        (lambda o: s.CosineAnnealingWarmRestarts(o, 0), ValueError, "positive integer T_0"),
        (lambda o: s.SequentialLR(o, [], []), ValueError, "at least one scheduler"),
        (lambda o: s.SequentialLR(o, [s.StepLR(o, 1)], [1]), ValueError, "one more than"),
        (lambda o: s.ChainedScheduler([s.StepLR(o, 1)], sgd()), ValueError, "same optimizer"),
        (
            lambda o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
            ValueError,
            "does not support `ReduceLROnPlateau`",
        ),
    ],
)
def test_refusals(act, error, words):
    with pytest.raises(error, match=words):
        act(sgd(momentum=0.9))


def test_too_many_steps_of_one_cycle():
    o = sgd(momentum=0.9)
    scheduler = s.OneCycleLR(o, 1.0, total_steps=2)
    o.step()
    scheduler.step()
    scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 3 times"):
        scheduler.step()
