// A whole recurrent network by cuDNN, forward and backward.
#include <algorithm>

#include "tessera/gen/copy.h"
#include "tessera/gen/join.h"
#include "tessera/gen/random.h"
#include "tessera/gen/rnn.h"
#include "tessera/gen/view.h"
#include "tessera/ops/conv/settings.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/modes.h"
#include "tessera/ops/rnn/cudnn_call.h"
#include "tessera/ops/rnn/network.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

using rnn::Mode;
using rnn::Network;
using rnn::PlanReply;

struct Sizes {
  int64_t input, hidden, projection, steps, batch;
  int64_t out() const { return projection > 0 ? projection : hidden; }
};

Sizes sizes_of(const Network& net, const TensorBase& data, const Dims& batch_sizes) {
  const rnn::Weights w = net.at(0);
  const bool packed = !batch_sizes.empty();
  return {data.sizes().back(), w.w_hh.size(0) / rnn::gates_of(net.mode),
          w.w_hr.defined() ? w.w_hr.size(0) : 0,
          packed ? static_cast<int64_t>(batch_sizes.size()) : data.size(0),
          packed ? batch_sizes[0] : data.size(1)};
}

Dims told(const Network& net, const Sizes& s, DType dtype, bool train, const Dims& batch_sizes) {
  Dims out(static_cast<size_t>(rnn::kFirstBatch));
  out[rnn::kMode] = static_cast<int64_t>(net.mode);
  out[rnn::kHasBiases] = net.has_biases;
  out[rnn::kLayers] = net.layers;
  out[rnn::kBothWays] = net.both_ways;
  out[rnn::kInputSize] = s.input;
  out[rnn::kHiddenSize] = s.hidden;
  out[rnn::kProjectionSize] = s.projection;
  out[rnn::kSteps] = s.steps;
  out[rnn::kBatch] = s.batch;
  out[rnn::kDType] = static_cast<int64_t>(dtype);
  out[rnn::kTrain] = train;
  out[rnn::kFlags] = conv::flags();
  out[rnn::kPacked] = static_cast<int64_t>(batch_sizes.size());
  for (int64_t n : batch_sizes) out.push_back(n);
  return out;
}

PlanReply ask(const TensorBase& where, Dims ints) {
  PlanReply reply;
  ints[rnn::kReply] = reinterpret_cast<int64_t>(&reply);
  launch("cudnn_rnn_plan", {&where, 1}, {}, ints.span());
  return reply;
}

bool has_size(const TensorBase& t, Dims size) { return t.defined() && t.sizes() == size; }

// Every weight and state has the size that the network asks for.
bool fits(const Network& net, const Sizes& s, const std::vector<TensorBase>& state) {
  const int64_t parts = net.layers * net.directions(), rows = rnn::gates_of(net.mode) * s.hidden;
  if (s.hidden <= 0 || s.input <= 0 || s.steps <= 0 || s.batch <= 0) return false;
  for (int64_t i = 0; i < parts; ++i) {
    const rnn::Weights w = net.at(i);
    const int64_t columns = i < net.directions() ? s.input : s.out() * net.directions();
    if (!has_size(w.w_ih, {rows, columns}) || !has_size(w.w_hh, {rows, s.out()})) return false;
    if (net.has_biases && (!has_size(w.b_ih, {rows}) || !has_size(w.b_hh, {rows}))) return false;
    if (net.has_projection() && !has_size(w.w_hr, {s.projection, s.hidden})) return false;
  }
  for (size_t i = 0; i < state.size(); ++i)
    if (!has_size(state[i], {parts, s.batch, i == 0 ? s.out() : s.hidden})) return false;
  return true;
}

TensorBase ready(const TensorBase& t, DType dtype) { return op::contiguous(in_dtype(t, dtype)); }

Network read_network(auto&& c, int first) {
  return {static_cast<Mode>(c.integer(first)),
          c.flag(first + 1),
          c.integer(first + 2),
          0.0,
          true,
          c.flag(first + 3),
          c.tensors(1)};
}

// Raises unless the weights and states are those of the network that the arguments from `first` on
// describe: what the kernels of cuDNN rely on.
void check_network(const Call& c, int first) {
  check_integer(c, first, 0, static_cast<int64_t>(Mode::kGRU));
  check_integer(c, first + 2, 1, INT32_MAX);
  const TensorBase& data = c.tensor(0);
  const Dims batch_sizes = c.ints(first + 4);
  check_dim(c, 0, batch_sizes.empty() ? 3 : 2);
  check_floating(c, 0);
  const Network net = read_network(c, first);
  const bool lstm = net.mode == Mode::kLSTM;
  const int64_t own = net.has_biases ? 4 : 2, parts = net.layers * net.directions(),
                n = static_cast<int64_t>(net.weights.size());
  TS_CHECK(n == parts * own || (lstm && n == parts * (own + 1)), c.op.name, "(): expected ", own,
           " weights for each of ", parts, " layers and directions, got ", n, " in all");
  TS_CHECK(c.has(3) == lstm, c.op.name, "(): an LSTM has a cell state, other networks have none");
  TS_CHECK(net.at(0).w_hh.dim() == 2, c.op.name, "(): expected weights of 2 dimensions");
  int64_t rows = 0, last = batch_sizes.empty() ? 0 : batch_sizes[0];
  for (int64_t size : batch_sizes) {
    TS_CHECK(size > 0 && size <= last, c.op.name, "(): batch_sizes must fall and be positive, got ",
             batch_sizes);
    rows += last = size;
  }
  TS_CHECK(batch_sizes.empty() || rows == data.size(0), c.op.name, "(): batch_sizes add up to ",
           rows, ", but there are ", data.size(0), " rows of data");
  std::vector<TensorBase> state{c.tensor(2)};
  if (lstm) state.push_back(c.tensor(3));
  TS_CHECK(fits(net, sizes_of(net, data, batch_sizes), state), c.op.name,
           "(): weights and states do not fit an input of shape ", data.sizes());
}

constexpr int kFirst = 4;  // of the arguments that say what network it is

Outputs forward(const Call& c) {
  const TensorBase& data = c.tensor(0);
  const DType t = data.dtype();
  check_network(c, kFirst);
  const Network net = read_network(c, kFirst);
  const Dims batch_sizes = c.ints(kFirst + 4);
  const bool train = c.flag(kFirst + 5), lstm = net.mode == Mode::kLSTM;
  const Sizes s = sizes_of(net, data, batch_sizes);
  Dims size = data.sizes();
  size[size.size() - 1] = s.out() * net.directions();
  std::vector<TensorBase> out{new_empty(size, t, data.device()),
                              new_empty(c.tensor(2).sizes(), t, data.device())};
  const Dims ints = told(net, s, t, train, batch_sizes);
  const PlanReply plan = ask(out[0], ints);
  TS_CHECK(plan.possible, "cuDNN does not take this recurrent network");
  if (lstm) out.push_back(new_empty(c.tensor(3).sizes(), t, data.device()));
  TensorBase space = new_empty({plan.weights}, DType::kUInt8, data.device()),
             reserve = new_empty({train ? plan.reserve : 0}, DType::kUInt8, data.device());
  std::vector<TensorBase> outputs = out, inputs{ready(data, t), ready(c.tensor(2), t)};
  outputs.push_back(space);
  if (train) outputs.push_back(reserve);
  if (lstm) inputs.push_back(ready(c.tensor(3), t));
  for (const TensorBase& w : c.tensors(1)) inputs.push_back(ready(w, t));
  launch("cudnn_rnn_forward", outputs, inputs, ints.span());
  if (!lstm) out.push_back(new_empty({0}, t, data.device()));
  out.push_back(reserve);
  out.push_back(space);
  return out;
}

Outputs backward(const Call& c) {
  const TensorBase& data = c.tensor(0);
  const DType t = data.dtype();
  constexpr int kNetwork = 10;
  check_network(c, kNetwork);
  const Network net = read_network(c, kNetwork);
  const Dims batch_sizes = c.ints(kNetwork + 4);
  const bool wants_weights = c.flag(kNetwork + 5), lstm = net.mode == Mode::kLSTM;
  const Sizes s = sizes_of(net, data, batch_sizes);
  Dims size = data.sizes();
  size[size.size() - 1] = s.out() * net.directions();
  for (int arg : {4, 7}) check_shape(c, arg, size.span());
  for (int arg : {5, 6}) check_dtype(c, arg, DType::kUInt8);
  if (c.has(8)) check_shape(c, 8, c.tensor(2).sizes().span());
  TS_CHECK(lstm || !c.has(9), c.op.name, "(): only an LSTM has a gradient of its cell state");
  if (c.has(9)) check_shape(c, 9, c.tensor(3).sizes().span());
  Dims ints = told(net, s, t, true, batch_sizes);
  std::vector<TensorBase> out, inputs{ready(data, t), ready(c.tensor(2), t)};
  auto like = [&](const TensorBase& x) { out.push_back(new_empty(x.sizes(), t, x.device())); };
  like(data);
  like(c.tensor(2));
  if (lstm) {
    like(c.tensor(3));
    inputs.push_back(ready(c.tensor(3), t));
  }
  if (wants_weights)
    for (const TensorBase& w : c.tensors(1)) like(w);
  inputs.push_back(ready(c.tensor(4), t));
  inputs.push_back(ready(c.tensor(7), t));
  inputs.push_back(c.tensor(6));
  for (int i : {8, 9}) {  // those of the last states, which are rarely used
    ints[i == 8 ? rnn::kHasGradH : rnn::kHasGradC] = c.has(i);
    if (c.has(i)) inputs.push_back(ready(c.tensor(i), t));
  }
  std::vector<TensorBase> outputs = out;
  outputs.push_back(c.tensor(5));
  launch("cudnn_rnn_backward", outputs, inputs, ints.span());
  return out;
}

}  // namespace

// Results: the outputs, the last states, what its backward needs. For one that has no c, an empty
// one stands.
TS_OP({
    .schema = "_cudnn_rnn(Tensor input, Tensor[] weights, Tensor hx, Tensor? cx, int mode, "
              "bool has_biases, int num_layers, bool bidirectional, int[] batch_sizes, bool train) "
              "-> (Tensor output, Tensor hy, Tensor cy, Tensor reserve, Tensor weight_space)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = forward,
    // The weights themselves are saved so that a change of theirs is seen.
    .saves = "input weights hx cx output reserve weight_space",
    .backward =
        [](Backward& b) {
          auto given = [&](int k) { return b.has_grad(k) ? b.result_grads[k] : TensorBase(); };
          const bool lstm = static_cast<Mode>(b.integer(kFirst)) == Mode::kLSTM;
          const Dims batch_sizes = b.ints(kFirst + 4);
          TensorBase reserve = b.results[3];
          if (graph_is_retained()) reserve = op::clone(reserve);
          std::vector<TensorBase> g = op::_cudnn_rnn_backward(
              b.tensor(0), b.tensors(1), b.tensor(2), lstm ? b.tensor(3) : TensorBase(),
              b.results[0], reserve, b.results[4], b.grad, given(1), lstm ? given(2) : TensorBase(),
              b.integer(kFirst), b.flag(kFirst + 1), b.integer(kFirst + 2), b.flag(kFirst + 3),
              batch_sizes.span(), b.wants_any(1));
          size_t next = 0;
          b.set(0, g[next++]);
          b.set(2, g[next++]);
          if (lstm) b.set(3, g[next++]);
          for (int k = 0; next < g.size(); ++k) b.set(1, k, g[next++]);
        },
});

TS_OP({
    .schema = "_cudnn_rnn_backward(Tensor input, Tensor[] weights, Tensor hx, Tensor? cx, "
              "Tensor output, Tensor reserve, Tensor weight_space, Tensor grad_output, "
              "Tensor? grad_hy, Tensor? grad_cy, int mode, bool has_biases, int num_layers, "
              "bool bidirectional, int[] batch_sizes, bool wants_weights) -> Tensor[]",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = backward,
    .backward =
        [](Backward&) {
          TS_CHECK_IMPLEMENTED(
              false,
              "Double backwards is not supported for CuDNN RNNs: cuDNN has no gradient of its "
              "gradient. Please disable the cuDNN backend while the forward pass runs:\n"
              "with torch.backends.cudnn.flags(enabled=False):\n    output = model(input)");
        },
});

namespace rnn {

namespace {

bool have_one_dtype(const Network& net, const TensorBase& data,
                    const std::vector<TensorBase>& state) {
  auto joins = [&](const TensorBase& t) {
    return t.defined() && t.device() == data.device() && t.dtype() == data.dtype();
  };
  return is_floating(data.dtype()) && std::all_of(state.begin(), state.end(), joins) &&
         std::all_of(net.weights.begin(), net.weights.end(), joins);
}

bool wants_gradient(const Network& net, const TensorBase& data,
                    const std::vector<TensorBase>& state) {
  auto wants = [](const TensorBase& t) { return t.requires_grad(); };
  return records_gradients() && (wants(data) || std::any_of(state.begin(), state.end(), wants) ||
                                 std::any_of(net.weights.begin(), net.weights.end(), wants));
}

Result run_part(const Network& net, const TensorBase& data, const std::vector<TensorBase>& state,
                const Dims& batch_sizes, bool train) {
  Outputs all =
      op::_cudnn_rnn(data, net.weights, state[0], state.size() > 1 ? state[1] : TensorBase(),
                     static_cast<int64_t>(net.mode), net.has_biases, net.layers, net.both_ways,
                     batch_sizes.span(), train);
  Result r{all[0], {all[1]}};
  if (state.size() > 1) r.state.push_back(all[2]);
  return r;
}

// Dropout is our own, so that it comes from the program's generator and can be repeated by its
// seed: cuDNN's has a state that can only be set by a slow call.
Result run_parts(const Network& net, const TensorBase& data, const std::vector<TensorBase>& state,
                 const Dims& batch_sizes, bool train) {
  if (net.dropout == 0 || !net.train || net.layers == 1)
    return run_part(net, data, state, batch_sizes, train);
  TensorBase x = data;
  std::vector<std::vector<TensorBase>> finals(state.size());
  for (int64_t layer = 0; layer < net.layers; ++layer) {
    if (layer > 0) x = op::dropout(x, net.dropout, true);
    std::vector<TensorBase> own;
    for (const TensorBase& h : state)
      own.push_back(op::narrow(h, 0, layer * net.directions(), net.directions()));
    Result r = run_part(net.part(layer), x, own, batch_sizes, train);
    x = r.out;
    for (size_t i = 0; i < own.size(); ++i) finals[i].push_back(r.state[i]);
  }
  Result out{x, {}};
  for (const std::vector<TensorBase>& states : finals) out.state.push_back(op::cat(states));
  return out;
}

}  // namespace

bool run_by_cudnn(const Network& net, const TensorBase& data, const std::vector<TensorBase>& state,
                  const Dims& batch_sizes, Result* out) {
  if (!data.device().is_cuda() || !(conv::flags() & conv::kVendorLibrary) ||
      !has_kernel(data.device(), "cudnn_rnn_forward"))
    return false;
  if (data.numel() == 0 || !have_one_dtype(net, data, state)) return false;
  const DType t = data.dtype();
  const Sizes s = sizes_of(net, data, batch_sizes);
  if (!fits(net, s, state)) return false;
  const bool train = wants_gradient(net, data, state);
  if (!ask(new_empty({1}, t, data.device()), told(net, s, t, train, batch_sizes)).possible)
    return false;
  try {
    *out = run_parts(net, data, state, batch_sizes, train);
  } catch (const Error& e) {  // a limit that it did not tell beforehand
    if (e.kind() != ErrorKind::kNotImplemented) throw;
    return false;
  }
  return true;
}

}  // namespace rnn

}  // namespace tessera
