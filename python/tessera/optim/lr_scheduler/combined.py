"""Schedules made of schedules."""

from bisect import bisect_right

from .base import LRScheduler


def _states(scheduler):
    """The state of one that holds others: theirs in its own."""
    state = {
        key: value
        for key, value in scheduler.__dict__.items()
        if key not in ("optimizer", "_schedulers")
    }
    state["_schedulers"] = [s.state_dict() for s in scheduler._schedulers]
    return state


def _load_states(scheduler, state_dict):
    for mine, saved in zip(scheduler._schedulers, state_dict["_schedulers"]):
        mine.load_state_dict(saved)
    scheduler.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})


def _check_all(owner, schedulers, optimizer):
    if len(schedulers) < 1:
        raise ValueError(
            f"{type(owner).__name__} expects at least one scheduler to be chained, but got no "
            "scheduler."
        )
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(
                f"{type(owner).__name__} at index {i} should have `optimizer` as its attribute."
            )
        from .plateau import ReduceLROnPlateau

        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{type(owner).__name__} does not support `ReduceLROnPlateau` scheduler as it "
                "requires additional kwargs to be specified when calling `step`, but got one at "
                f"index {i} in the given schedulers sequence."
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{type(owner).__name__} expects all schedulers to belong to the same optimizer, "
                f"but got scheduler {type(scheduler).__name__} at index {i} that has "
                f"{scheduler.optimizer}, which is different from {type(optimizer).__name__}."
            )


class SequentialLR(LRScheduler):
    """One schedule after another, changing at the milestones."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        _check_all(self, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # All of them made their first step when they were made: undone, but for the first one's.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self._undo(schedulers)
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def _undo(self, schedulers):
        for scheduler in schedulers:
            if hasattr(scheduler, "_schedulers"):
                self._undo(scheduler._schedulers)
            else:
                scheduler.last_epoch -= 1

    def step(self):
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self):
        return _states(self)

    def load_state_dict(self, state_dict):
        _load_states(self, state_dict)


class ChainedScheduler(LRScheduler):
    """Several schedules at once."""

    def __init__(self, schedulers, optimizer=None):
        if len(schedulers) >= 1 and optimizer is None:
            optimizer = schedulers[0].optimizer
        _check_all(self, schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = [group["lr"] for group in optimizer.param_groups]

    def step(self):
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self):
        return _states(self)

    def load_state_dict(self, state_dict):
        _load_states(self, state_dict)
