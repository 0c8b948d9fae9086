"""Averages of a model's parameters over training, and a schedule for them."""

import itertools
import math
from copy import deepcopy

import tessera as torch

from ..nn.modules.module import Module
from .lr_scheduler.base import LRScheduler, _as_list

PARAM_LIST = list


def get_ema_multi_avg_fn(decay=0.999):
    """Exponential means, of a list of parameters."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )

    @torch.no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for mean, current in zip(ema_param_list, current_param_list):
            if mean.is_floating_point() or mean.is_complex():
                mean.lerp_(current, 1 - decay)
            else:  # without the fraction
                mean.copy_(mean * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """Plain means, of a list of parameters."""

    @torch.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        for mean, current in zip(averaged_param_list, current_param_list):
            mean.copy_(mean + (current - mean) / (num_averaged + 1))

    return swa_update


def get_ema_avg_fn(decay=0.999):
    """Exponential means, of one parameter."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )

    @torch.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """Plain means, of one parameter."""

    @torch.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are means of what the model's have been."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Takes the model's present parameters into the means."""

        def all_of(module):
            if self.use_buffers:
                return itertools.chain(module.parameters(), module.buffers())
            return module.parameters()

        means, currents = [], []
        for mean, current in zip(all_of(self.module), all_of(model)):
            current = current.detach().to(mean.device)
            if self.n_averaged == 0:
                mean.detach().copy_(current)
            else:
                means.append(mean.detach())
                currents.append(current)
        if means:
            self._average(means, currents)
        if not self.use_buffers:
            # Buffers are as they are, not means.
            for mine, theirs in zip(self.module.buffers(), model.buffers()):
                mine.detach().copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1

    def _average(self, means, currents):
        if self.multi_avg_fn is not None:
            self.multi_avg_fn(means, currents, self.n_averaged.to(means[0].device))
        elif self.avg_fn is None:
            get_swa_multi_avg_fn()(means, currents, int(self.n_averaged))
        else:
            for mean, current in zip(means, currents):
                mean.copy_(self.avg_fn(mean, current, self.n_averaged.to(mean.device)))


@torch.no_grad()
def update_bn(loader, model, device=None):
    """Sets the running statistics of batch normalisations from the data of a loader."""
    from ..nn.modules.batchnorm import _BatchNorm

    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # the mean over all batches
    for batch in loader:
        input = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(input if device is None else input.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present rates to swa_lr, which then stays."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for lr, group in zip(_as_list(optimizer, "swa_lr", swa_lr), optimizer.param_groups):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, t):
        if self.anneal_strategy == "linear":
            return t
        return (1 - math.cos(math.pi * t)) / 2

    def get_lr(self):
        # last_epoch has been counted up already, _step_count is that of this call.
        self._check_called_within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self._share(max(0, min(1, (step - 1) / max(1, self.anneal_epochs))))
        lrs = []
        now = self._share(max(0, min(1, step / max(1, self.anneal_epochs))))
        for group in self.optimizer.param_groups:
            swa_lr, lr = group["swa_lr"], group["lr"]
            # What the rate was before annealing began, from what it is.
            first = swa_lr if before == 1 else (lr - before * swa_lr) / (1 - before)
            lrs.append(swa_lr * now + first * (1 - now))
        return lrs
