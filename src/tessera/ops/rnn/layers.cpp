// torch.rnn_tanh, rnn_relu, lstm and gru: all layers over a sequence, dense or packed; and their
// cells, one step.
#include "tessera/gen/linalg.h"
#include "tessera/gen/rnn.h"
#include "tessera/gen/view.h"
#include "tessera/ops/rnn/network.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

using rnn::Mode;
using rnn::Network;

// The arguments from `first` on: params, has_biases, num_layers, dropout, train, bidirectional.
Network read_network(const Call& c, Mode mode, int first) {
  Network net{mode,
              c.flag(first + 1),
              c.integer(first + 2),
              c.number(first + 3),
              c.flag(first + 4),
              c.flag(first + 5),
              c.tensors(first)};
  TS_CHECK(net.layers > 0, c.op.name, ": num_layers must be positive, got ", net.layers);
  const int64_t parts = net.layers * net.directions();
  const int64_t n = static_cast<int64_t>(net.weights.size()), own = net.has_biases ? 4 : 2;
  TS_CHECK(n == parts * own || (mode == Mode::kLSTM && n == parts * (own + 1)), c.op.name,
           ": expected ", own, " weights for each of ", parts, " layers and directions, got ", n,
           " in all");
  return net;
}

std::vector<TensorBase> read_state(const Call& c, Mode mode, int at) {
  if (mode != Mode::kLSTM) return {c.tensor(at)};
  auto given = c.tensors(at);
  TS_CHECK(given.size() == 2, c.op.name, " expects two hidden states");
  return {given.begin(), given.end()};
}

Outputs results(rnn::Result r) {
  std::vector<TensorBase> all{std::move(r.out)};
  for (TensorBase& s : r.state) all.push_back(std::move(s));
  return all;
}

void check_states(const Call& c, const Network& net, const std::vector<TensorBase>& state,
                  int64_t batch) {
  // The cell state of an LSTM is as wide as its gates, also where the hidden state is projected.
  const TensorBase& w_hh = net.weights[1];
  if (state.size() > 1 && w_hh.dim() == 2)
    TS_CHECK(state[1].dim() == 3 && state[1].size(2) == w_hh.size(0) / rnn::gates_of(net.mode),
             c.op.name, ": expected a cell state of width ", w_hh.size(0) / rnn::gates_of(net.mode),
             ", got size ", state[1].sizes());
  for (const TensorBase& s : state)
    TS_CHECK(s.dim() == 3 && s.size(0) == net.layers * net.directions() && s.size(1) == batch,
             c.op.name, ": expected hidden states of ", net.layers * net.directions(),
             " layers and directions and ", batch, " samples, got size ", s.sizes());
}

Outputs run_dense(const Call& c, Mode mode) {
  Network net = read_network(c, mode, 2);
  std::vector<TensorBase> state = read_state(c, mode, 1);
  TensorBase data = c.tensor(0);
  TS_CHECK(data.dim() == 3, c.op.name, ": input must have 3 dimensions, got ", data.dim());
  const bool batch_first = c.flag(8);
  if (batch_first) data = op::transpose(data, 0, 1);
  TS_CHECK(data.size(0) > 0, "Expected sequence length to be larger than 0 in RNN");
  check_states(c, net, state, data.size(1));
  rnn::Result r = rnn::run(net, data, state, {});
  if (batch_first) r.out = op::transpose(r.out, 0, 1);
  return results(std::move(r));
}

Outputs run_packed(const Call& c, Mode mode) {
  Network net = read_network(c, mode, 3);
  std::vector<TensorBase> state = read_state(c, mode, 2);
  TS_CHECK(c.tensor(0).dim() == 2, c.op.name, ": packed data must have 2 dimensions, got ",
           c.tensor(0).dim());
  Dims sizes = host_ints(c.tensor(1));
  TS_CHECK(!sizes.empty(), c.op.name, ": batch_sizes is empty");
  int64_t sum = 0, last = sizes[0];
  for (int64_t n : sizes) {
    TS_CHECK(n > 0 && n <= last, c.op.name, ": batch_sizes must fall and be positive, got ", sizes);
    last = n;
    sum += n;
  }
  TS_CHECK(sum == c.tensor(0).size(0), c.op.name, ": batch_sizes add up to ", sum,
           ", but there are ", c.tensor(0).size(0), " rows of data");
  check_states(c, net, state, sizes[0]);
  return results(rnn::run(net, c.tensor(0), state, sizes));
}

// Sizes that would otherwise broadcast.
void check_cell(const Call& c, const std::vector<TensorBase>& state) {
  const TensorBase &input = c.tensor(0), &w_ih = c.tensor(2), &w_hh = c.tensor(3);
  TS_CHECK(input.size(1) == w_ih.size(1), "input has inconsistent input_size: got ", input.size(1),
           " expected ", w_ih.size(1));
  const int64_t hidden = w_hh.size(1);
  for (size_t i = 0; i < state.size(); ++i) {
    const TensorBase& h = state[i];
    TS_CHECK(h.dim() == 2, "Expected 2D hidden", uint64_t{i}, " (batch x hidden_size), but got ",
             h.dim(), "D tensor");
    TS_CHECK(h.size(0) == input.size(0), "Input batch size ", input.size(0),
             " doesn't match hidden", uint64_t{i}, " batch size ", h.size(0));
    TS_CHECK(h.size(1) == hidden, "hidden", uint64_t{i}, " has inconsistent hidden_size: got ",
             h.size(1), ", expected ", hidden);
  }
}

// input, hx, w_ih, w_hh, b_ih, b_hh
std::vector<TensorBase> run_cell(const Call& c, Mode mode) {
  std::vector<TensorBase> state = read_state(c, mode, 1);
  check_cell(c, state);
  rnn::step(mode, op::linear(c.tensor(0), c.tensor(2), c.maybe(4)), state,
            {TensorBase(), c.tensor(3), TensorBase(), c.maybe(5), TensorBase()});
  return state;
}

}  // namespace

TS_OP({
    .schema = "rnn_tanh(Tensor input, Tensor hx, Tensor[] params, bool has_biases, "
              "int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> "
              "(Tensor, Tensor)",
    .doc = "h = tanh(W x + U h + b) over a sequence, in several layers: the outputs of the last "
           "layer, and the last h of each.",
    .example = "torch.rnn_tanh(torch.ones(2, 1, 1), torch.zeros(1, 1, 1), "
               "[torch.ones(1, 1), torch.ones(1, 1)], False, 1, 0.0, False, False, False)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_dense(c, Mode::kTanh); },
    .autocast = Autocast::kLower,
    .samples = {{"U(3, 2, 2), U(1, 2, 3), [U(3, 2), U(3, 3), U(3), U(3)], True, 1, 0.0, False, "
                 "False, False"}},
});
TS_OP({
    .schema = "rnn_tanh(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, "
              "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> "
              "(Tensor, Tensor)",
    .doc = "... of a packed sequence.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_packed(c, Mode::kTanh); },
    .autocast = Autocast::kLower,
});
TS_OP({
    .schema = "rnn_relu(Tensor input, Tensor hx, Tensor[] params, bool has_biases, "
              "int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> "
              "(Tensor, Tensor)",
    .doc = "As rnn_tanh, with relu.",
    .example = "torch.rnn_relu(torch.ones(2, 1, 1), torch.zeros(1, 1, 1), "
               "[torch.ones(1, 1), torch.ones(1, 1)], False, 1, 0.0, False, False, False)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_dense(c, Mode::kReLU); },
    .autocast = Autocast::kLower,
    .samples = {{"U(2, 3, 2), U(2, 2, 3), [U(3, 2), U(3, 3), U(3, 2), U(3, 3)], False, 1, 0.0, "
                 "False, True, True"}},
});
TS_OP({
    .schema = "rnn_relu(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, "
              "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> "
              "(Tensor, Tensor)",
    .doc = "... of a packed sequence.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_packed(c, Mode::kReLU); },
    .autocast = Autocast::kLower,
});
TS_OP({
    .schema = "lstm(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "
              "float dropout, bool train, bool bidirectional, bool batch_first) -> "
              "(Tensor, Tensor, Tensor)",
    .doc = "Long short-term memory over a sequence, in several layers: the outputs of the last "
           "layer, and the last h and c of each.",
    .example = "torch.lstm(torch.ones(2, 1, 1), [torch.zeros(1, 1, 1), torch.zeros(1, 1, 1)], "
               "[torch.ones(4, 1), torch.ones(4, 1)], False, 1, 0.0, False, False, False)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_dense(c, Mode::kLSTM); },
    .autocast = Autocast::kLower,
    .samples = {{"U(3, 2, 2), [U(1, 2, 3), U(1, 2, 3)], [U(12, 2), U(12, 3), U(12), U(12)], True, "
                 "1, 0.0, False, False, False"},
                {"U(2, 3, 2), [U(2, 2, 2), U(2, 2, 2)], [U(8, 2), U(8, 2), U(8, 2), U(8, 2)], "
                 "False, 2, 0.0, False, False, True"}},
});
TS_OP({
    .schema = "lstm(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, "
              "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> "
              "(Tensor, Tensor, Tensor)",
    .doc = "... of a packed sequence.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_packed(c, Mode::kLSTM); },
    .autocast = Autocast::kLower,
});
TS_OP({
    .schema = "gru(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
              "float dropout, bool train, bool bidirectional, bool batch_first) -> "
              "(Tensor, Tensor)",
    .doc = "Gated recurrent units over a sequence, in several layers: the outputs of the last "
           "layer, and the last h of each.",
    .example = "torch.gru(torch.ones(2, 1, 1), torch.zeros(1, 1, 1), "
               "[torch.ones(3, 1), torch.ones(3, 1)], False, 1, 0.0, False, False, False)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_dense(c, Mode::kGRU); },
    .autocast = Autocast::kLowerGpu,
    .samples = {{"U(3, 2, 2), U(1, 2, 3), [U(9, 2), U(9, 3), U(9), U(9)], True, 1, 0.0, False, "
                 "False, False"}},
});
TS_OP({
    .schema = "gru(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "
              "int num_layers, float dropout, bool train, bool bidirectional) -> "
              "(Tensor, Tensor)",
    .doc = "... of a packed sequence.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_packed(c, Mode::kGRU); },
    .autocast = Autocast::kLowerGpu,
});

TS_OP({
    .schema = "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, "
              "Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    .doc = "One step of rnn_tanh.",
    .example = "torch.rnn_tanh_cell(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1), "
               "torch.ones(1, 1))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_cell(c, Mode::kTanh); },
    .autocast = Autocast::kLower,
    .samples = {{"U(2, 3), U(2, 2), U(2, 3), U(2, 2), U(2), U(2)"}},
});
TS_OP({
    .schema = "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, "
              "Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    .doc = "One step of rnn_relu.",
    .example = "torch.rnn_relu_cell(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1), "
               "torch.ones(1, 1))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_cell(c, Mode::kReLU); },
    .autocast = Autocast::kLower,
    .samples = {{"U(2, 3), U(2, 2), U(2, 3), U(2, 2), U(2), U(2)"}},
});
TS_OP({
    .schema = "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
              "Tensor? b_hh=None) -> (Tensor, Tensor)",
    .doc = "One step of lstm: the next h and c.",
    .example = "torch.lstm_cell(torch.ones(1, 1), [torch.ones(1, 1), torch.ones(1, 1)], "
               "torch.ones(4, 1), torch.ones(4, 1))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_cell(c, Mode::kLSTM); },
    .autocast = Autocast::kLowerGpu,
    .samples = {{"U(2, 3), [U(2, 2), U(2, 2)], U(8, 3), U(8, 2), U(8), U(8)"}},
});
TS_OP({
    .schema = "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
              "Tensor? b_hh=None) -> Tensor",
    .doc = "One step of gru.",
    .example = "torch.gru_cell(torch.ones(1, 1), torch.ones(1, 1), torch.ones(3, 1), "
               "torch.ones(3, 1))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return run_cell(c, Mode::kGRU); },
    .autocast = Autocast::kLowerGpu,
    .samples = {{"U(2, 3), U(2, 2), U(6, 3), U(6, 2), U(6), U(6)"}},
});

}  // namespace tessera
