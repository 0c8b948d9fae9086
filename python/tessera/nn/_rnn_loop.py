"""Recurrent networks over operators: one call of a step for each moment.

The functions have the signatures of torch.rnn_tanh, torch.lstm, torch.gru and their cells, and
stand in for those that are no operators of their own.
"""

import tessera as torch

from . import functional as F


def _gates(x, h, w_hh, b_hh):
    return x + F.linear(h, w_hh, b_hh)


def _tanh_step(x, state, w_hh, b_hh, w_hr):
    h = torch.tanh(_gates(x, state[0], w_hh, b_hh))
    return h, (h,)


def _relu_step(x, state, w_hh, b_hh, w_hr):
    h = F.relu(_gates(x, state[0], w_hh, b_hh))
    return h, (h,)


def _lstm_step(x, state, w_hh, b_hh, w_hr):
    h, c = state
    i, f, g, o = _gates(x, h, w_hh, b_hh).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    if w_hr is not None:
        h = F.linear(h, w_hr)
    return h, (h, c)


def _gru_step(x, state, w_hh, b_hh, w_hr):
    h = state[0]
    x_r, x_z, x_n = x.chunk(3, 1)
    h_r, h_z, h_n = F.linear(h, w_hh, b_hh).chunk(3, 1)
    new = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
    h = (h - new) * torch.sigmoid(x_z + h_z) + new
    return h, (h,)


_STEPS = {"rnn_tanh": _tanh_step, "rnn_relu": _relu_step, "lstm": _lstm_step, "gru": _gru_step}


def _scan(step, xs, state, weights, reverse):
    """Outputs in order of time, and the last state. Later moments may have a smaller batch."""
    outs = [None] * len(xs)
    ended = []  # states of the samples that ended early
    first = state
    if reverse and xs:
        state = tuple(s[: xs[-1].size(0)] for s in state)
    for t in range(len(xs) - 1, -1, -1) if reverse else range(len(xs)):
        size, have = xs[t].size(0), state[0].size(0)
        if size < have:
            ended.append(tuple(s[size:] for s in state))
            state = tuple(s[:size] for s in state)
        elif size > have:
            state = tuple(torch.cat([s, f[have:size]]) for s, f in zip(state, first))
        outs[t], state = step(xs[t], state, *weights)
    if ended:
        state = tuple(torch.cat(parts) for parts in zip(state, *reversed(ended)))
    return outs, state


def _run(mode, xs_of, join, data, hx, params, has_biases, num_layers, dropout, train, both_ways):
    """All layers and directions. xs_of gives a layer's input by moments, join its outputs."""
    step = _STEPS[mode]
    directions = 2 if both_ways else 1
    per_layer = len(params) // (num_layers * directions)
    finals = []
    for layer in range(num_layers):
        if layer > 0 and dropout > 0:
            data = F.dropout(data, dropout, train)
        joined = []
        for direction in range(directions):
            at = layer * directions + direction
            w = params[at * per_layer : (at + 1) * per_layer]
            w_hr = w[-1] if per_layer == (5 if has_biases else 3) else None
            b_ih, b_hh = w[2:4] if has_biases else (None, None)
            xs = xs_of(F.linear(data, w[0], b_ih))
            state = tuple(h[at] for h in hx)
            outs, state = _scan(step, xs, state, (w[1], b_hh, w_hr), direction == 1)
            joined.append(join(outs))
            finals.append(state)
        data = joined[0] if directions == 1 else torch.cat(joined, -1)
    return data, tuple(torch.stack(states) for states in zip(*finals))


def _recurrent(mode):
    tuples = mode == "lstm"

    def run(data, *args):
        """(input, hx, params, ...) or (data, batch_sizes, hx, params, ...), as torch has them."""
        if isinstance(args[2], bool):
            hx, params, has_biases, layers, dropout, train, both_ways, batch_first = args
            if batch_first:
                data = data.transpose(0, 1)
            out, state = _run(
                mode,
                lambda x: list(x.unbind(0)),
                torch.stack,
                data,
                hx if tuples else (hx,),
                params,
                has_biases,
                layers,
                dropout,
                train,
                both_ways,
            )
            return (out.transpose(0, 1) if batch_first else out), *state
        sizes, hx, params, has_biases, layers, dropout, train, both_ways = args
        sizes = sizes.tolist()
        out, state = _run(
            mode,
            lambda x: list(x.split(sizes)),
            torch.cat,
            data,
            hx if tuples else (hx,),
            params,
            has_biases,
            layers,
            dropout,
            train,
            both_ways,
        )
        return out, *state

    run.__name__ = mode
    return run


def _cell(mode):
    step = _STEPS[mode]

    def run(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
        state = hx if mode == "lstm" else (hx,)
        _, state = step(F.linear(input, w_ih, b_ih), tuple(state), w_hh, b_hh, None)
        return state if mode == "lstm" else state[0]

    run.__name__ = mode + "_cell"
    return run


_LOOPS = {mode: _recurrent(mode) for mode in _STEPS}
_LOOPS.update({mode + "_cell": _cell(mode) for mode in _STEPS})


def operator(name):
    """torch.NAME, or the loop that stands in for it."""
    found = torch._C.ops.get(name)
    return found if found is not None else _LOOPS[name]
