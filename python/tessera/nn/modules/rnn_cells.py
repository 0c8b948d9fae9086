"""One step of a recurrent network."""

import math

import tessera as torch

from .. import init
from ..parameter import Parameter
from .module import Module


class RNNCellBase(Module):
    """Parameters and checks of a step."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        options = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(torch.empty((rows, input_size), **options))
        self.weight_hh = Parameter(torch.empty((rows, hidden_size), **options))
        for name in ("bias_ih", "bias_hh"):
            made = Parameter(torch.empty(rows, **options)) if bias else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        if nonlinearity != "tanh":
            text += f", nonlinearity={nonlinearity}"
        return text

    def _check(self, what, tensor):
        if tensor.dim() not in (1, 2):
            raise ValueError(
                f"{self._get_name()}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead"
            )

    def _zeros(self, input):
        return torch.zeros(
            (input.size(0), self.hidden_size), dtype=input.dtype, device=input.device
        )

    def _step(self, name, input, hx):
        return getattr(torch, name)(
            input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )

    def _run(self, name, input, hx):
        """A state of one tensor; a single sample gets a batch dimension for the time."""
        self._check("input", input)
        if hx is not None:
            self._check("hidden", hx)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = self._zeros(input)
        elif not batched:
            hx = hx.unsqueeze(0)
        result = self._step(name, input, hx)
        return result if batched else result.squeeze(0)


class RNNCell(RNNCellBase):
    """h = tanh(W x + U h + b), or with relu."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None
    ):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._run(f"rnn_{self.nonlinearity}_cell", input, hx)


class LSTMCell(RNNCellBase):
    """A step of long short-term memory."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        self._check("input", input)
        for i, state in enumerate(hx or ()):
            self._check(f"hx[{i}]", state)
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = self._zeros(input)
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = self._step("lstm_cell", input, hx)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """A step of a gated recurrent unit."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._run("gru_cell", input, hx)
