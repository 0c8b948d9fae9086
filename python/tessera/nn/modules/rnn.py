"""Recurrent networks: RNN, LSTM and GRU."""

import math
import numbers
import warnings

import tessera as torch

from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module
from .rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]


def _by_sample(tensor, order):
    return tensor.index_select(1, order)


class RNNBase(Module):
    """Parameters, checks and bookkeeping; a subclass chooses the step."""

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        directions = 2 if bidirectional else 1
        if (
            not isinstance(dropout, numbers.Number)
            or not 0 <= dropout <= 1
            or isinstance(dropout, bool)
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=2,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        if hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        gates = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}.get(mode)
        if gates is None:
            raise ValueError("Unrecognized RNN mode: " + mode)
        out_size = proj_size if proj_size > 0 else hidden_size
        self._flat_weights_names = []
        self._all_weights = []
        for layer in range(num_layers):
            for direction in range(directions):
                in_size = input_size if layer == 0 else out_size * directions
                shapes = [
                    ("weight_ih", (gates * hidden_size, in_size)),
                    ("weight_hh", (gates * hidden_size, out_size)),
                ]
                if bias:
                    shapes += [
                        ("bias_ih", (gates * hidden_size,)),
                        ("bias_hh", (gates * hidden_size,)),
                    ]
                if proj_size > 0:
                    shapes.append(("weight_hr", (proj_size, hidden_size)))
                suffix = f"_l{layer}" + ("_reverse" if direction == 1 else "")
                names = [name + suffix for name, _ in shapes]
                for name, (_, shape) in zip(names, shapes):
                    setattr(self, name, Parameter(torch.empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names.extend(names)
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def _flat_weights(self):
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Nothing to do: the operator takes parameters wherever they lie."""

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # ---- checks ------------------------------------------------------------------------------

    def check_input(self, input, batch_sizes):
        weight = getattr(self, self._flat_weights_names[0])
        if input.dtype != weight.dtype and not torch.is_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        wanted = 2 if batch_sizes is not None else 3
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )
        if input.size(0) == 0 and batch_sizes is None and not self.batch_first:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")

    def get_expected_hidden_size(self, input, batch_sizes):
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        directions = 2 if self.bidirectional else 1
        size = self.proj_size if self.proj_size > 0 else self.hidden_size
        return (self.num_layers * directions, batch, size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        return hx if permutation is None else _by_sample(hx, permutation)

    # ---- running -----------------------------------------------------------------------------

    def _zeros(self, input, batch, size):
        directions = 2 if self.bidirectional else 1
        return torch.zeros(
            (self.num_layers * directions, batch, size), dtype=input.dtype, device=input.device
        )

    def _initial(self, input, batch):
        """A state of zeros."""
        return self._zeros(input, batch, self.hidden_size)

    def _check_state(self, hx, batched):
        if hx.dim() != (3 if batched else 2):
            raise RuntimeError(
                f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, hx should also be "
                f"{'3-D' if batched else '2-D'} but got {hx.dim()}-D tensor"
            )

    def _with_batch(self, hx):
        return hx.unsqueeze(1)

    def _without_batch(self, hx):
        return hx.squeeze(1)

    def _wrap_state(self, results):
        return results[1]

    def forward(self, input, hx=None):
        run = getattr(torch, self.mode.lower())
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if isinstance(input, PackedSequence):
            data, batch_sizes, sorted_indices, unsorted_indices = input
            if hx is None:
                hx = self._initial(data, int(batch_sizes[0]))
            else:
                hx = self.permute_hidden(hx, sorted_indices)
            self.check_forward_args(data, hx, batch_sizes)
            results = run(data, batch_sizes, hx, self._flat_weights, *options)
            out = PackedSequence(results[0], batch_sizes, sorted_indices, unsorted_indices)
            return out, self.permute_hidden(self._wrap_state(results), unsorted_indices)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._initial(input, input.size(batch_dim))
        else:
            self._check_state(hx, batched)
            if not batched:
                hx = self._with_batch(hx)
        self.check_forward_args(input, hx, None)
        results = run(input, hx, self._flat_weights, *options, self.batch_first)
        out, state = results[0], self._wrap_state(results)
        if not batched:
            out, state = out.squeeze(batch_dim), self._without_batch(state)
        return out, state

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)
        # PyTorch keeps the weights in a list as well.
        self.__dict__.pop("_flat_weights", None)


class RNN(RNNBase):
    """h = tanh(W x + U h + b), or with relu."""

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        nonlinearity="tanh",
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        device=None,
        dtype=None,
        **kwargs,
    ):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if kwargs:
            raise TypeError(
                f"RNN.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
            )
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if nonlinearity not in modes:
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        self.nonlinearity = nonlinearity
        super().__init__(
            modes[nonlinearity],
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )


class LSTM(RNNBase):
    """Long short-term memory."""

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def get_expected_cell_size(self, input, batch_sizes):
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return (layers, batch, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0],
            self.get_expected_hidden_size(input, batch_sizes),
            "Expected hidden[0] size {}, got {}",
        )
        self.check_hidden_size(
            hidden[1],
            self.get_expected_cell_size(input, batch_sizes),
            "Expected hidden[1] size {}, got {}",
        )

    def permute_hidden(self, hx, permutation):
        if permutation is None:
            return hx
        return _by_sample(hx[0], permutation), _by_sample(hx[1], permutation)

    def _initial(self, input, batch):
        out_size = self.proj_size if self.proj_size > 0 else self.hidden_size
        return (self._zeros(input, batch, out_size), self._zeros(input, batch, self.hidden_size))

    def _check_state(self, hx, batched):
        wanted = 3 if batched else 2
        if hx[0].dim() != wanted or hx[1].dim() != wanted:
            raise RuntimeError(
                f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, hx and cx should "
                f"also be {wanted}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _with_batch(self, hx):
        return (hx[0].unsqueeze(1), hx[1].unsqueeze(1))

    def _without_batch(self, hx):
        return (hx[0].squeeze(1), hx[1].squeeze(1))

    def _wrap_state(self, results):
        return (results[1], results[2])


class GRU(RNNBase):
    """A gated recurrent unit."""

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        device=None,
        dtype=None,
        **kwargs,
    ):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if kwargs:
            raise TypeError(
                f"GRU.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
            )
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )
