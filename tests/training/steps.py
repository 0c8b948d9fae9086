"""What the programs here share: 50 steps of training, each of which prints its loss."""

import sys

import torch

DTYPE = getattr(torch, sys.argv[1] if len(sys.argv) > 1 else "float32")
STEPS = 50


def train(model, optimizer, batches, loss_of, clip=None, scheduler=None):
    """`batches` are taken in turn; `loss_of(model, *batch)` is what is made small."""
    model.train()
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, *batches[step % len(batches)])
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        print(repr(loss.item()))
