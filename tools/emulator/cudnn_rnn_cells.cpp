// The arithmetic of the recurrent networks: sample after sample, step after step.
#include <cmath>
#include <limits>

#include "cudnn_rnn.h"

namespace emulator {

int RnnProblem::rows() const {
  if (data.layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED) return data.steps * data.batch;
  int n = 0;
  for (int length : data.lengths) n += length;
  return n;
}

int RnnProblem::row(int t, int b) const {
  if (data.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED) return t * data.batch + b;
  if (data.layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED) return b * data.steps + t;
  int before = 0;
  for (int length : data.lengths) before += length < t ? length : t;
  return before + b;
}

namespace {

constexpr double kForwardDone = 1, kDataDone = 2;

// Numbers kept of each row of each part, and of each row the outputs of each layer.
struct Kept {
  explicit Kept(const cudnnRNNStruct& r) : h(r.hidden), g(r.gates() * r.hidden), o(r.out) {}
  int h, g, o;
  int gates() const { return 0; }           // after their functions; then gradients before them
  int extra() const { return g; }           // c and c before (LSTM); R h + b of the new one (GRU)
  int before() const { return g + 2 * h; }  // h of the step before
  int raw() const { return before() + o; }  // h ahead of the projection
  int of_h() const { return raw() + h; }    // gradients at R h + b
  int of_out() const { return of_h() + g; }
  int size() const { return of_out() + o; }
};

template <class T, class A>
class Net {
 public:
  explicit Net(const RnnProblem& p) : p_(p), r_(p.net), k_(p.net), rows_(p.rows()) {
    if (!p.reserve) own_.resize(p.reserve_bytes() / sizeof(A));
    A* base = p.reserve ? static_cast<A*>(p.reserve) : own_.data();
    state_ = base;
    parts_ = base + 8;
    outs_ = parts_ + int64_t{r_.parts()} * rows_ * k_.size();
    for (bool bias : {false, true})
      for (int part = 0; part < r_.parts(); ++part)
        for (int id = 0; id <= 2 * r_.gates(); ++id)
          places_[bias].push_back(rnn_place(r_, part, id, bias));
  }

  void forward() {
    for (int part = 0; part < r_.parts(); ++part)
      for (int b = 0; b < p_.data.batch; ++b) forward(part, b);
    const int width = r_.out * r_.directions;
    T* y = static_cast<T*>(p_.y);
    for (int64_t i = 0; i < int64_t{rows_} * width; ++i) store<A>(y + i, A(0));
    each_row([&](int row) {
      for (int j = 0; j < width; ++j)
        store<A>(y + int64_t{row} * width + j, out(r_.layers - 1, row)[j]);
    });
    *state_ = A(kForwardDone);
  }

  void backward_data() {
    if (*state_ != A(kForwardDone)) return spoil(p_.dx, int64_t{rows_} * r_.input);
    const int width = r_.out * r_.directions;
    std::vector<A> dy(static_cast<size_t>(rows_ * width)), dx;
    for (size_t i = 0; i < dy.size(); ++i) dy[i] = load<A>(static_cast<const T*>(p_.dy) + i);
    for (int layer = r_.layers - 1; layer >= 0; --layer) {
      const int columns = r_.columns(layer * r_.directions);
      dx.assign(static_cast<size_t>(rows_ * columns), A(0));
      for (int d = 0; d < r_.directions; ++d)
        for (int b = 0; b < p_.data.batch; ++b) backward(layer, d, b, dy, dx);
      dy = dx;
    }
    for (size_t i = 0; i < dx.size(); ++i) store<A>(static_cast<T*>(p_.dx) + i, dx[i]);
    *state_ = A(kDataDone);
  }

  void backward_weights() {
    if (*state_ != A(kDataDone))
      return spoil(p_.dweights, static_cast<int64_t>(rnn_weight_bytes(r_) / sizeof(T)));
    const int g = r_.gates(), h = r_.hidden;
    for (int part = 0; part < r_.parts(); ++part) {
      for (int id = 0; id < 2 * g; ++id) {
        const bool of_x = id < g;
        const int at = (of_x ? k_.gates() : k_.of_h()) + id % g * h;
        add_products(part, id, false, at, of_x ? -1 : k_.before());
        add_products(part, id, true, at, 0);
      }
      if (r_.projects()) add_products(part, 2 * g, false, k_.of_out(), k_.raw());
    }
  }

 private:
  template <class F>
  void each_row(F f) {
    for (int b = 0; b < p_.data.batch; ++b)
      for (int t = 0; t < p_.data.lengths[static_cast<size_t>(b)]; ++t) f(p_.row(t, b));
  }
  void spoil(void* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      store<A>(static_cast<T*>(to) + i, std::numeric_limits<A>::quiet_NaN());
  }
  A* kept(int part, int row) { return parts_ + (int64_t{part} * rows_ + row) * k_.size(); }
  A* out(int layer, int row) {
    return outs_ + (int64_t{layer} * rows_ + row) * r_.out * r_.directions;
  }
  A input(int layer, int row, int j) {
    return layer == 0 ? load<A>(static_cast<const T*>(p_.x) + int64_t{row} * r_.input + j)
                      : out(layer - 1, row)[j];
  }
  A weight(int part, int id, bool bias, int i, int j) const {
    const RnnPlace& at = places_[bias][size_t(part * (2 * r_.gates() + 1) + id)];
    return load<A>(reinterpret_cast<const T*>(static_cast<const char*>(p_.weights) + at.offset) +
                   int64_t{i} * at.columns + j);
  }
  A state(const void* from, int part, int b, int size, int j) const {
    return from ? load<A>(static_cast<const T*>(from) + (int64_t{part} * p_.data.batch + b) * size +
                          j)
                : A(0);
  }
  void set_state(void* to, int part, int b, int size, int j, A v) const {
    if (to) store<A>(static_cast<T*>(to) + (int64_t{part} * p_.data.batch + b) * size + j, v);
  }
  static A sigmoid(A x) { return A(1) / (A(1) + std::exp(-x)); }
  // As what lies in memory between steps.
  static A rounded(A x) {
    T t;
    store<A>(&t, x);
    return load<A>(&t);
  }

  void forward(int part, int b) {
    const int g = r_.gates(), h = r_.hidden, o = r_.out, layer = part / r_.directions,
              columns = r_.columns(part), length = p_.data.lengths[static_cast<size_t>(b)];
    const bool reverse = part % r_.directions;
    std::vector<A> now(static_cast<size_t>(o)), c(static_cast<size_t>(h)),
        of_x(static_cast<size_t>(g * h)), of_h(static_cast<size_t>(g * h));
    for (int j = 0; j < o; ++j) now[size_t(j)] = state(p_.hx, part, b, o, j);
    for (int j = 0; j < h; ++j) c[size_t(j)] = state(p_.cx, part, b, h, j);
    for (int i = 0; i < length; ++i) {
      const int row = p_.row(reverse ? length - 1 - i : i, b);
      A* k = kept(part, row);
      for (int j = 0; j < o; ++j) k[k_.before() + j] = now[size_t(j)];
      for (int q = 0; q < g * h; ++q) {
        A a = weight(part, q / h, true, q % h, 0), e = weight(part, g + q / h, true, q % h, 0);
        for (int j = 0; j < columns; ++j)
          a += weight(part, q / h, false, q % h, j) * input(layer, row, j);
        for (int j = 0; j < o; ++j) e += weight(part, g + q / h, false, q % h, j) * now[size_t(j)];
        of_x[size_t(q)] = a;
        of_h[size_t(q)] = e;
      }
      for (int j = 0; j < h; ++j) {
        auto sum = [&](int gate) {
          return of_x[size_t(gate * h + j)] + of_h[size_t(gate * h + j)];
        };
        A* gate = k + k_.gates() + j;
        A* raw = k + k_.raw() + j;
        if (r_.mode == CUDNN_LSTM) {
          gate[0] = sigmoid(sum(0));
          gate[h] = sigmoid(sum(1));
          gate[2 * h] = std::tanh(sum(2));
          gate[3 * h] = sigmoid(sum(3));
          k[k_.extra() + h + j] = c[size_t(j)];
          c[size_t(j)] = gate[h] * c[size_t(j)] + gate[0] * gate[2 * h];
          k[k_.extra() + j] = c[size_t(j)];
          *raw = gate[3 * h] * std::tanh(c[size_t(j)]);
        } else if (r_.mode == CUDNN_GRU) {
          gate[0] = sigmoid(sum(0));
          gate[h] = sigmoid(sum(1));
          k[k_.extra() + j] = of_h[size_t(2 * h + j)];
          gate[2 * h] = std::tanh(of_x[size_t(2 * h + j)] + gate[0] * of_h[size_t(2 * h + j)]);
          *raw = (A(1) - gate[h]) * gate[2 * h] + gate[h] * now[size_t(j)];
        } else {
          gate[0] = *raw = r_.mode == CUDNN_RNN_TANH ? std::tanh(sum(0)) : std::fmax(sum(0), A(0));
        }
      }
      for (int j = 0; j < o; ++j) {
        A v = k[k_.raw() + j];
        if (r_.projects()) {
          v = 0;
          for (int q = 0; q < h; ++q) v += weight(part, 2 * g, false, j, q) * k[k_.raw() + q];
        }
        now[size_t(j)] = rounded(v);
        out(layer, row)[part % r_.directions * o + j] = now[size_t(j)];
      }
    }
    for (int j = 0; j < o; ++j) set_state(p_.hy, part, b, o, j, now[size_t(j)]);
    for (int j = 0; j < h; ++j) set_state(p_.cy, part, b, h, j, c[size_t(j)]);
  }

  void backward(int layer, int direction, int b, const std::vector<A>& dy, std::vector<A>& dx) {
    const int part = layer * r_.directions + direction, g = r_.gates(), h = r_.hidden, o = r_.out,
              columns = r_.columns(part), length = p_.data.lengths[static_cast<size_t>(b)];
    std::vector<A> dh(static_cast<size_t>(o)), dc(static_cast<size_t>(h)),
        raw(static_cast<size_t>(h)), keep(static_cast<size_t>(h));
    for (int j = 0; j < o; ++j) dh[size_t(j)] = state(p_.dhy, part, b, o, j);
    for (int j = 0; j < h; ++j) dc[size_t(j)] = state(p_.dcy, part, b, h, j);
    for (int i = 0; i < length; ++i) {
      const int row = p_.row(direction ? i : length - 1 - i, b);
      A* k = kept(part, row);
      for (int j = 0; j < o; ++j) {
        dh[size_t(j)] += dy[size_t(row * o * r_.directions + direction * o + j)];
        k[k_.of_out() + j] = dh[size_t(j)];
      }
      for (int q = 0; q < h; ++q) {
        raw[size_t(q)] = r_.projects() ? A(0) : dh[size_t(q)];
        for (int j = 0; r_.projects() && j < o; ++j)
          raw[size_t(q)] += weight(part, 2 * g, false, j, q) * dh[size_t(j)];
      }
      for (int j = 0; j < h; ++j) {
        A *gate = k + k_.gates() + j, *of_h = k + k_.of_h() + j, d = raw[size_t(j)];
        keep[size_t(j)] = 0;
        if (r_.mode == CUDNN_LSTM) {
          const A in = gate[0], forget = gate[h], fresh = gate[2 * h], show = gate[3 * h],
                  t = std::tanh(k[k_.extra() + j]);
          A whole = dc[size_t(j)] + d * show * (1 - t * t);
          gate[0] = whole * fresh * in * (1 - in);
          gate[h] = whole * k[k_.extra() + h + j] * forget * (1 - forget);
          gate[2 * h] = whole * in * (1 - fresh * fresh);
          gate[3 * h] = d * t * show * (1 - show);
          dc[size_t(j)] = whole * forget;
        } else if (r_.mode == CUDNN_GRU) {
          const A reset = gate[0], update = gate[h], fresh = gate[2 * h], e = k[k_.extra() + j];
          const A dn = d * (1 - update) * (1 - fresh * fresh);
          gate[0] = dn * e * reset * (1 - reset);
          gate[h] = d * (k[k_.before() + j] - fresh) * update * (1 - update);
          gate[2 * h] = dn;
          of_h[2 * h] = dn * reset;
          keep[size_t(j)] = d * update;
        } else {
          gate[0] = d * (r_.mode == CUDNN_RNN_TANH ? 1 - gate[0] * gate[0] : A(gate[0] > 0));
        }
        for (int q = 0; q < g; ++q)
          if (r_.mode != CUDNN_GRU || q != 2) of_h[q * h] = gate[q * h];
      }
      for (int j = 0; j < o; ++j) {
        A v = r_.mode == CUDNN_GRU ? keep[size_t(j)] : A(0);
        for (int q = 0; q < g * h; ++q)
          v += weight(part, g + q / h, false, q % h, j) * k[k_.of_h() + q];
        dh[size_t(j)] = v;
      }
      for (int j = 0; j < columns; ++j)
        for (int q = 0; q < g * h; ++q)
          dx[size_t(row * columns + j)] += weight(part, q / h, false, q % h, j) * k[k_.gates() + q];
    }
    for (int j = 0; j < o; ++j) set_state(p_.dhx, part, b, o, j, dh[size_t(j)]);
    for (int j = 0; j < h; ++j) set_state(p_.dcx, part, b, h, j, dc[size_t(j)]);
  }

  // Adds kept[left + i] * kept[right + j], or the layer's input where right is negative, or one.
  void add_products(int part, int id, bool bias, int left, int right) {
    const RnnPlace at = rnn_place(r_, part, id, bias);
    T* to = reinterpret_cast<T*>(static_cast<char*>(p_.dweights) + at.offset);
    for (int i = 0; i < at.rows; ++i)
      for (int j = 0; j < at.columns; ++j) {
        A sum = 0;
        each_row([&](int row) {
          const A* k = kept(part, row);
          sum += k[left + i] * (bias         ? A(1)
                                : right >= 0 ? k[right + j]
                                             : input(part / r_.directions, row, j));
        });
        T* place = to + int64_t{i} * at.columns + j;
        store<A>(place, load<A>(place) + sum);
      }
  }

  const RnnProblem& p_;
  const cudnnRNNStruct& r_;
  const Kept k_;
  const int rows_;
  std::vector<RnnPlace> places_[2];  // of matrices, of biases
  std::vector<A> own_;
  A *state_, *parts_, *outs_;
};

template <class F>
void by_type(const RnnProblem& p, F f) {
  switch (p.net.type) {
    case CUDNN_DATA_DOUBLE:
      return f(Net<double, double>(p));
    case CUDNN_DATA_HALF:
      return f(Net<_Float16, float>(p));
    case CUDNN_DATA_BFLOAT16:
      return f(Net<Bf16, float>(p));
    default:
      return f(Net<float, float>(p));
  }
}

}  // namespace

size_t RnnProblem::reserve_bytes() const {
  const size_t number = net.type == CUDNN_DATA_DOUBLE ? 8 : 4;
  const size_t n = 8 + static_cast<size_t>(net.parts()) * static_cast<size_t>(rows()) *
                           static_cast<size_t>(Kept(net).size() + net.out);
  return n * number;
}

void rnn_forward(const RnnProblem& p) {
  by_type(p, [](auto&& n) { n.forward(); });
}
void rnn_backward_data(const RnnProblem& p) {
  by_type(p, [](auto&& n) { n.backward_data(); });
}
void rnn_backward_weights(const RnnProblem& p) {
  by_type(p, [](auto&& n) { n.backward_weights(); });
}

}  // namespace emulator
