#include "tessera/nn/rnn.h"

#include <cmath>

#include "tessera/amp/autocast.h"
#include "tessera/nn/functional.h"
#include "tessera/nn/init.h"
#include "tessera/nn/text.h"
#include "tessera/ops/rnn/network.h"

namespace tessera::nn {

namespace {

using Mode = RNNBase::Mode;

using rnn::gates_of;
using rnn::states_of;

void draw_uniform(const Module& module, int64_t hidden_size) {
  double bound = 1.0 / std::sqrt(static_cast<double>(hidden_size));
  for (const Tensor& weight : module.parameters()) init::uniform_(weight, -bound, bound);
}

std::string size_text(std::initializer_list<int64_t> sizes) {
  return py_tuple(std::span(sizes.begin(), sizes.size()));
}

}  // namespace

RNNBase::RNNBase(Mode mode, int64_t input, int64_t hidden, const LSTMOptions& o)
    : mode(mode), input_size(input), hidden_size(hidden), options(o) {
  TS_CHECK_VALUE(o.dropout >= 0 && o.dropout <= 1,
                 "dropout should be a number in range [0, 1] representing the probability of an "
                 "element being zeroed");
  TS_CHECK_VALUE(hidden > 0, "hidden_size must be greater than zero");
  TS_CHECK_VALUE(o.num_layers > 0, "num_layers must be greater than zero");
  TS_CHECK_VALUE(o.proj_size >= 0,
                 "proj_size should be a positive integer or zero to disable projections");
  TS_CHECK_VALUE(o.proj_size < hidden, "proj_size has to be smaller than hidden_size");
  int64_t rows = gates_of(mode) * hidden;
  for (int64_t layer = 0; layer < o.num_layers; ++layer)
    for (int64_t direction = 0; direction < directions(); ++direction) {
      std::string suffix = cat("_l", layer, direction == 1 ? "_reverse" : "");
      int64_t columns = layer == 0 ? input : out_size() * directions();
      auto add = [&](const char* name, Ints shape) {
        register_parameter(name + suffix, empty(std::move(shape), o.dtype, o.device));
      };
      add("weight_ih", {rows, columns});
      add("weight_hh", {rows, out_size()});
      if (o.bias) {
        add("bias_ih", {rows});
        add("bias_hh", {rows});
      }
      if (o.proj_size > 0) add("weight_hr", {o.proj_size, hidden});
    }
  reset_parameters();
}

void RNNBase::reset_parameters() { draw_uniform(*this, hidden_size); }

void RNNBase::check(const Tensor& input, const std::vector<Tensor>& state) const {
  DType own = parameter_at(0).dtype();
  TS_CHECK_VALUE(input.dtype() == own || amp::autocast_enabled(input.device().type),
                 "RNN input dtype (torch.", dtype_name(input.dtype()),
                 ") does not match weight dtype (torch.", dtype_name(own), ")");
  TS_CHECK(input.size(-1) == input_size, "input.size(-1) must be equal to input_size. Expected ",
           input_size, ", got ", input.size(-1));
  TS_CHECK(input.size(0) > 0 || options.batch_first,
           "Expected sequence length to be larger than 0 in RNN");
  int64_t layers = options.num_layers * directions();
  int64_t batch = input.size(options.batch_first ? 0 : 1);
  for (size_t i = 0; i < state.size(); ++i) {
    int64_t size = i == 0 ? out_size() : hidden_size;
    TS_CHECK(state[i].sizes() == (Dims{layers, batch, size}), "Expected hidden",
             mode == Mode::kLSTM ? cat("[", i, "]") : "", " size ",
             size_text({layers, batch, size}), ", got ", state[i].sizes());
  }
}

std::tuple<Tensor, std::vector<Tensor>> RNNBase::run(const Tensor& input,
                                                     std::vector<Tensor> state) {
  TS_CHECK_VALUE(input.dim() == 2 || input.dim() == 3, name(),
                 ": Expected input to be 2D or 3D, got ", input.dim(), "D instead");
  bool batched = input.dim() == 3;
  int64_t batch_dim = options.batch_first ? 0 : 1;
  Tensor data = batched ? input : input.unsqueeze(batch_dim);
  if (state.empty()) {
    for (size_t i = 0; i < states_of(mode); ++i)
      state.push_back(zeros({options.num_layers * directions(), data.size(batch_dim),
                             i == 0 ? out_size() : hidden_size},
                            data.dtype(), data.device()));
  } else {
    for (Tensor& s : state) {
      TS_CHECK(s.dim() == input.dim(), "For ", batched ? "batched 3-D" : "unbatched 2-D",
               " input, hx should also be ", batched ? "3-D" : "2-D", " but got ", s.dim(),
               "-D tensor");
      if (!batched) s = s.unsqueeze(1);
    }
  }
  check(data, state);
  if (options.batch_first) data = data.transpose(0, 1);
  const int64_t each = 2 + (options.bias ? 2 : 0) + (options.proj_size > 0 ? 1 : 0);
  std::vector<TensorBase> weights;
  for (int64_t i = 0; i < options.num_layers * directions() * each; ++i)
    weights.push_back(parameter_at(static_cast<size_t>(i)));
  rnn::Result r = rnn::run({mode, options.bias, options.num_layers, options.dropout, is_training(),
                            options.bidirectional, weights},
                           data, {state.begin(), state.end()}, {});
  data = Tensor(r.out);
  if (options.batch_first) data = data.transpose(0, 1);
  std::vector<Tensor> last;
  for (const TensorBase& s : r.state) {
    last.emplace_back(s);
    if (!batched) last.back() = last.back().squeeze(1);
  }
  return {batched ? data : data.squeeze(batch_dim), std::move(last)};
}

std::string RNNBase::extra_repr() const {
  std::string text = cat(input_size, ", ", hidden_size);
  if (options.proj_size != 0) text += cat(", proj_size=", options.proj_size);
  if (options.num_layers != 1) text += cat(", num_layers=", options.num_layers);
  if (!options.bias) text += ", bias=False";
  if (options.batch_first) text += ", batch_first=True";
  if (options.dropout != 0) text += ", dropout=" + py(options.dropout);
  if (options.bidirectional) text += ", bidirectional=True";
  return text;
}

namespace {
Mode mode_of(const std::string& nonlinearity) {
  TS_CHECK_VALUE(nonlinearity == "tanh" || nonlinearity == "relu", "Unknown nonlinearity '",
                 nonlinearity, "'. Select from 'tanh' or 'relu'.");
  return nonlinearity == "tanh" ? Mode::kTanh : Mode::kReLU;
}
std::vector<Tensor> given(const Tensor& hx) {
  return hx.defined() ? std::vector<Tensor>{hx} : std::vector<Tensor>{};
}
std::vector<Tensor> given(const LSTMState& hx) {
  return hx.h.defined() ? std::vector<Tensor>{hx.h, hx.c} : std::vector<Tensor>{};
}
}  // namespace

RNN::RNN(int64_t input, int64_t hidden, const RNNOptions& o)
    : RNNBase(
          mode_of(o.nonlinearity), input, hidden,
          {o.num_layers, o.bias, o.batch_first, o.dropout, o.bidirectional, 0, o.device, o.dtype}) {
}
std::tuple<Tensor, Tensor> RNN::forward(const Tensor& input, const Tensor& hx) {
  auto [out, last] = run(input, given(hx));
  return {out, last[0]};
}

GRU::GRU(int64_t input, int64_t hidden, const GRUOptions& o)
    : RNNBase(
          Mode::kGRU, input, hidden,
          {o.num_layers, o.bias, o.batch_first, o.dropout, o.bidirectional, 0, o.device, o.dtype}) {
}
std::tuple<Tensor, Tensor> GRU::forward(const Tensor& input, const Tensor& hx) {
  auto [out, last] = run(input, given(hx));
  return {out, last[0]};
}

LSTM::LSTM(int64_t input, int64_t hidden, const LSTMOptions& o)
    : RNNBase(Mode::kLSTM, input, hidden, o) {}
std::tuple<Tensor, LSTMState> LSTM::forward(const Tensor& input, const LSTMState& hx) {
  auto [out, last] = run(input, given(hx));
  return {out, LSTMState{last[0], last[1]}};
}

// ---- one step ---------------------------------------------------------------------------------

RNNCellBase::RNNCellBase(Mode mode, int64_t input, int64_t hidden, const CellOptions& o)
    : mode(mode), input_size(input), hidden_size(hidden), bias(o.bias) {
  TS_CHECK_VALUE(hidden > 0, "hidden_size must be greater than zero");
  int64_t rows = gates_of(mode) * hidden;
  register_parameter("weight_ih", empty({rows, input}, o.dtype, o.device));
  register_parameter("weight_hh", empty({rows, hidden}, o.dtype, o.device));
  register_parameter("bias_ih", bias ? empty({rows}, o.dtype, o.device) : Tensor());
  register_parameter("bias_hh", bias ? empty({rows}, o.dtype, o.device) : Tensor());
  reset_parameters();
}

void RNNCellBase::reset_parameters() { draw_uniform(*this, hidden_size); }

std::string RNNCellBase::extra_repr() const {
  std::string text = cat(input_size, ", ", hidden_size);
  if (!bias) text += ", bias=False";
  if (mode == Mode::kReLU) text += ", nonlinearity=relu";
  return text;
}

std::vector<Tensor> RNNCellBase::run(const Tensor& input, std::vector<Tensor> state) {
  auto check = [&](const char* what, const Tensor& t) {
    TS_CHECK_VALUE(t.dim() == 1 || t.dim() == 2, name(), ": Expected ", what,
                   " to be 1D or 2D, got ", t.dim(), "D instead");
  };
  check("input", input);
  bool batched = input.dim() == 2;
  Tensor x = batched ? input : input.unsqueeze(0);
  if (!state[0].defined()) {
    Tensor none = zeros({x.size(0), hidden_size}, x.dtype(), x.device());
    state.assign(states_of(mode), none);
  } else {
    for (Tensor& s : state) {
      check("hidden", s);
      if (!batched) s = s.unsqueeze(0);
    }
  }
  std::vector<TensorBase> next(state.begin(), state.end());
  rnn::step(mode, linear(x, parameter_at(0), parameter_at(2)), next,
            {TensorBase(), parameter_at(1), TensorBase(), parameter_at(3), TensorBase()});
  for (size_t i = 0; i < state.size(); ++i) {
    state[i] = Tensor(next[i]);
    if (!batched) state[i] = state[i].squeeze(0);
  }
  return state;
}

RNNCell::RNNCell(int64_t input, int64_t hidden, const RNNCellOptions& o)
    : RNNCellBase(mode_of(o.nonlinearity), input, hidden, {o.bias, o.device, o.dtype}) {}

LSTMState LSTMCell::forward(const Tensor& input, const LSTMState& hx) {
  std::vector<Tensor> last = run(input, {hx.h, hx.c});
  return {last[0], last[1]};
}

}  // namespace tessera::nn
