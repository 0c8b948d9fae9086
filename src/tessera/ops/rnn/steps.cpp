// A recurrent network by operators: one call of a step for each moment.
#include "tessera/gen/activation.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/join.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/random.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/rnn/network.h"

namespace tessera::rnn {

namespace {

using Tensors = std::vector<TensorBase>;

TensorBase rows(const TensorBase& t, int64_t from, int64_t to) {
  return op::slice(t, 0, from, to, 1);
}

// One direction of one layer. `moments` are W x + b; later ones may have fewer rows, and the
// samples that have ended keep their state.
Tensors scan(Mode mode, const Tensors& moments, Tensors& state, const Weights& w, bool reverse) {
  Tensors outs(moments.size());
  const Tensors first = state;
  std::vector<Tensors> ended;
  if (reverse && !moments.empty())
    for (TensorBase& s : state) s = rows(s, 0, moments.back().size(0));
  for (size_t i = 0; i < moments.size(); ++i) {
    const size_t t = reverse ? moments.size() - 1 - i : i;
    const int64_t size = moments[t].size(0), have = state[0].size(0);
    if (size < have) {
      ended.emplace_back();
      for (TensorBase& s : state) {
        ended.back().push_back(rows(s, size, have));
        s = rows(s, 0, size);
      }
    } else if (size > have) {  // going back, samples that are shorter join
      for (size_t k = 0; k < state.size(); ++k)
        state[k] = op::cat(Tensors{state[k], rows(first[k], have, size)});
    }
    step(mode, moments[t], state, w);
    outs[t] = state[0];
  }
  if (ended.empty()) return outs;
  for (size_t k = 0; k < state.size(); ++k) {
    Tensors parts{state[k]};
    for (size_t i = ended.size(); i-- > 0;) parts.push_back(ended[i][k]);
    state[k] = op::cat(parts);
  }
  return outs;
}

}  // namespace

Weights Network::at(int64_t i) const {
  const size_t n = per_direction();
  const TensorBase* w = weights.data() + static_cast<size_t>(i) * n;
  Weights out{w[0], w[1]};
  if (has_biases) {
    out.b_ih = w[2];
    out.b_hh = w[3];
  }
  if (has_projection()) out.w_hr = w[n - 1];
  return out;
}

Network Network::part(int64_t layer) const {
  Network out = *this;
  const size_t n = per_direction() * static_cast<size_t>(directions());
  out.weights = weights.subspan(static_cast<size_t>(layer) * n, n);
  out.layers = 1;
  return out;
}

// The gates side by side, each as wide as the state.
static Tensors gates_apart(const TensorBase& t, int64_t n) {
  TS_CHECK(t.dim() == 2 && t.size(1) > 0 && t.size(1) % n == 0,
           "the weights and biases of a cell must have ", n,
           " rows for each element of its state, but they give gates of shape ", t.sizes());
  return op::chunk(t, n, 1);
}

void step(Mode mode, const TensorBase& x, Tensors& state, const Weights& w) {
  TensorBase& h = state[0];
  TensorBase of_h = op::linear(h, w.w_hh, w.b_hh);
  if (mode == Mode::kGRU) {
    Tensors a = gates_apart(x, 3), b = gates_apart(of_h, 3);
    TensorBase fresh = op::tanh(op::add(a[2], op::mul(op::sigmoid(op::add(a[0], b[0])), b[2])));
    h = op::add(op::mul(op::sub(h, fresh), op::sigmoid(op::add(a[1], b[1]))), fresh);
    return;
  }
  TensorBase gates = op::add(x, of_h);
  if (mode == Mode::kTanh) h = op::tanh(gates);
  if (mode == Mode::kReLU) h = op::relu(gates);
  if (mode != Mode::kLSTM) return;
  Tensors part = gates_apart(gates, 4);
  TensorBase& c = state[1];
  c = op::add(op::mul(op::sigmoid(part[1]), c), op::mul(op::sigmoid(part[0]), op::tanh(part[2])));
  h = op::mul(op::sigmoid(part[3]), op::tanh(c));
  if (w.w_hr.defined()) h = op::linear(h, w.w_hr);
}

Result run_steps(const Network& net, TensorBase data, const Tensors& state,
                 const Dims& batch_sizes) {
  const bool packed = !batch_sizes.empty();
  std::vector<Tensors> finals(state.size());
  for (int64_t layer = 0; layer < net.layers; ++layer) {
    if (layer > 0 && net.dropout > 0) data = op::dropout(data, net.dropout, net.train);
    Tensors joined;
    for (int64_t direction = 0; direction < net.directions(); ++direction) {
      const int64_t at = layer * net.directions() + direction;
      const Weights w = net.at(at);
      TensorBase x = op::linear(data, w.w_ih, w.b_ih);
      Tensors own;
      for (const TensorBase& s : state) own.push_back(op::select(s, 0, at));
      Tensors outs = scan(net.mode, packed ? op::split(x, batch_sizes.span()) : op::unbind(x, 0),
                          own, w, direction == 1);
      joined.push_back(packed ? op::cat(outs) : op::stack(outs));
      for (size_t i = 0; i < own.size(); ++i) finals[i].push_back(own[i]);
    }
    data = joined.size() == 1 ? joined[0] : op::cat(joined, -1);
  }
  Result out{data, {}};
  for (const Tensors& states : finals) out.state.push_back(op::stack(states));
  return out;
}

Result run(const Network& net, const TensorBase& data, const Tensors& state,
           const Dims& batch_sizes) {
  Result out;
  return run_by_cudnn(net, data, state, batch_sizes, &out)
             ? out
             : run_steps(net, data, state, batch_sizes);
}

}  // namespace tessera::rnn
