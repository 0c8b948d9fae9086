"""SparseAdam, which needs sparse gradients."""

from .optimizer import Optimizer


class SparseAdam(Optimizer):
    """Not there: Tessera has no sparse gradients."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        raise NotImplementedError("torch.optim.SparseAdam is not implemented in Tessera yet")
