// What layer, group, instance and RMS norm are made of.
#include "second.h"
#include "tessera/driver/current.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/norm.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/valid.h"

namespace tessera {

TS_BODY(inverse_root, "t", 't', 1, (TS_FLOATS), return T(1) / sqrt(a + s0);)
TS_OP({
    .schema = "_inverse_root(Tensor self, Scalar eps) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &inverse_root_body,
    .not_differentiable = true,
});

namespace {

// An operand as rows x channels x inner; weights as rows x channels x 1.
struct Layout {
  int64_t rows, groups, channels, inner;

  Layout(const TensorBase& t, int64_t r, int64_t g, int64_t c)
      : rows(r), groups(g), channels(c), inner(r * c > 0 ? t.numel() / (r * c) : 0) {}
  Dims shape() const { return {rows, channels, inner}; }
  TensorBase stats(const TensorBase& t) const {
    Dims one{rows, 1, 1};
    return op::reshape(t, one.span());
  }
  TensorBase weights(const TensorBase& w) const {
    Dims one{1, groups, channels, 1}, all{rows / groups, groups, channels, 1};
    Dims flat{rows, channels, 1};
    TensorBase t = op::reshape(w, one.span());
    return op::reshape(op::expand(t, all.span()), flat.span());
  }
  TensorBase mean(const TensorBase& t) const {
    Dims dims{1, 2};
    return op::mean(t, dims.span(), true);
  }
  // From rows x channels x inner to one of each channel of all groups.
  TensorBase channel_sums(const TensorBase& t) const {
    Dims all{rows / groups, groups * channels, inner}, dims{0, 2};
    return op::sum(op::reshape(t, all.span()), dims.span());
  }
  TensorBase values(const TensorBase& t) const { return op::reshape(t, shape().span()); }
};

// The arguments rows, groups and channels, from `first` on, divide the input evenly, and those with
// an element for each channel have so many.
void check_layout(const Call& c, const TensorBase& x, int first, std::initializer_list<int> each) {
  const int64_t rows = c.integer(first), groups = c.integer(first + 1),
                channels = c.integer(first + 2);
  check_integer(c, first, 0);
  check_integer(c, first + 1, 1);
  check_integer(c, first + 2, 0);
  const int64_t n = x.numel();
  TS_CHECK(rows % groups == 0 &&
               (n == 0 || (rows > 0 && n % rows == 0 && channels > 0 && n / rows % channels == 0)),
           c.op.name, "(): an input of shape ", x.sizes(), " cannot be divided into ", rows,
           " rows of ", channels, " channels in ", groups, " groups");
  for (int arg : each) {
    if (!c.has(arg)) continue;
    int64_t expected;
    TS_CHECK(
        !__builtin_mul_overflow(groups, channels, &expected) && c.tensor(arg).numel() == expected,
        c.op.name, "(): expected one element for each of ", groups, " x ", channels,
        " channels, but got a tensor of shape ", c.tensor(arg).sizes());
    check_floating(c, arg);
  }
}

Outputs forward(const Call& c) {
  const TensorBase& x = c.tensor(0);
  check_floating(c, 0);
  check_layout(c, x, 3, {1, 2});
  TensorBase weight = c.maybe(1), bias = c.maybe(2);
  const int64_t rows = c.integer(3), groups = c.integer(4), channels = c.integer(5);
  const bool centred = c.flag(6);
  const double eps = c.number(7);
  const DType wide = stats_dtype(x.dtype());
  if (x.numel() > 0 && has_kernel(x.device(), "row_norm") && groups == 1 &&
      channels * rows == x.numel() && x.is_contiguous()) {
    TensorBase out[] = {new_unallocated(x.sizes(), x.dtype(), x.device()),
                        new_unallocated({rows}, wide, x.device()),
                        new_unallocated({rows}, wide, x.device())};
    TensorBase none = new_empty({0}, wide, x.device());
    TensorBase in[] = {x, weight.defined() ? weight : none, bias.defined() ? bias : none};
    const int64_t ints[] = {rows, groups, channels, centred};
    launch_later("row_norm", out, in, ints, {&eps, 1}, {0, 0, rows, channels, 0, 1});
    return std::vector<TensorBase>{out[0], out[1], out[2]};
  }
  if (x.numel() == 0 || has_kernel(x.device(), "row_norm")) {
    TensorBase out[] = {new_empty(x.sizes(), x.dtype(), x.device()),
                        new_empty({rows}, wide, x.device()), new_empty({rows}, wide, x.device())};
    if (x.numel() == 0) {
      fill(out[1], Scalar(0));
      fill(out[2], Scalar(0));
    } else if (!x.device().is_meta()) {
      TensorBase none = new_empty({0}, wide, x.device());
      TensorBase in[] = {x, weight.defined() ? weight : none, bias.defined() ? bias : none};
      int64_t ints[] = {rows, groups, channels, centred};
      launch("row_norm", out, in, ints, {&eps, 1});
    }
    return std::vector<TensorBase>{out[0], out[1], out[2]};
  }
  const Layout l(x, rows, groups, channels);
  TensorBase v = l.values(in_dtype(x, wide)), mean;
  if (centred) {
    mean = l.mean(v);
    v = op::sub(v, mean);
  }
  TensorBase factor = op::_inverse_root(l.mean(op::mul(v, v)), Scalar(eps));
  TensorBase y = op::mul(v, factor);
  if (weight.defined()) y = op::mul(y, l.weights(in_dtype(weight, wide)));
  if (bias.defined()) y = op::add(y, l.weights(in_dtype(bias, wide)));
  Dims one{rows};
  TensorBase f = op::reshape(factor, one.span());
  TensorBase m = mean.defined() ? op::reshape(mean, one.span()) : op::mul(f, 0);
  return std::vector<TensorBase>{op::reshape(in_dtype(y, x.dtype()), x.sizes().span()), m, f};
}

// grad, input, mean, factor, weight -> gradients of input, weight and bias (as sums in wide).
Outputs gradients(const Call& c) {
  const TensorBase &g = c.tensor(0), &x = c.tensor(1);
  check_floating(c, 0);
  check_floating(c, 1);
  check_layout(c, x, 5, {4});
  check_shape(c, 0, x.sizes().span());
  for (int arg : {2, 3}) {
    check_shape(c, arg, {c.integer(5)});
    check_dtype(c, arg, stats_dtype(x.dtype()));
  }
  TensorBase weight = c.maybe(4);
  const int64_t rows = c.integer(5), groups = c.integer(6), channels = c.integer(7);
  const bool centred = c.flag(8);
  const DType wide = stats_dtype(x.dtype());
  const Layout l(x, rows, groups, channels);
  Dims channel{groups * channels};
  if (x.numel() == 0 || x.device().is_meta()) {
    std::vector<TensorBase> out = {new_empty(x.sizes(), x.dtype(), x.device()),
                                   new_empty(channel, wide, x.device()),
                                   new_empty(channel, wide, x.device())};
    if (!x.device().is_meta())
      for (const TensorBase& t : out) fill(t, Scalar(0));
    return out;
  }
  if (l.inner == 1 && groups == 1 && g.is_contiguous() && x.is_contiguous() &&
      has_kernel(x.device(), "row_norm_backward")) {
    TensorBase out[] = {new_unallocated(x.sizes(), x.dtype(), x.device()),
                        new_unallocated(channel, wide, x.device()),
                        new_unallocated(channel, wide, x.device())};
    TensorBase none = new_empty({0}, wide, x.device());
    TensorBase in[] = {g, x, c.tensor(2), c.tensor(3), weight.defined() ? weight : none};
    const int64_t ints[] = {rows, groups, channels, centred};
    launch_later("row_norm_backward", out, in, ints, {}, {0, 0, rows, channels, 0, 3, true});
    return std::vector<TensorBase>{out[0], out[1], out[2]};
  }
  if (has_kernel(x.device(), "row_norm_backward")) {
    Dims sums = l.inner == 1 ? channel : Dims{rows / groups, groups * channels};
    TensorBase out[] = {new_empty(x.sizes(), x.dtype(), x.device()),
                        new_empty(sums, wide, x.device()), new_empty(sums, wide, x.device())};
    TensorBase none = new_empty({0}, wide, x.device());
    TensorBase in[] = {g, x, c.tensor(2), c.tensor(3), weight.defined() ? weight : none};
    int64_t ints[] = {rows, groups, channels, centred};
    launch("row_norm_backward", out, in, ints);
    if (l.inner == 1) return std::vector<TensorBase>{out[0], out[1], out[2]};
    Dims first{0};
    return std::vector<TensorBase>{out[0], op::sum(out[1], first.span()),
                                   op::sum(out[2], first.span())};
  }
  TensorBase factor = l.stats(c.tensor(3)), grad = l.values(in_dtype(g, wide));
  TensorBase xh = op::mul(op::sub(l.values(in_dtype(x, wide)), l.stats(c.tensor(2))), factor);
  TensorBase gw = weight.defined() ? op::mul(grad, l.weights(in_dtype(weight, wide))) : grad;
  TensorBase dx = op::sub(gw, op::mul(xh, l.mean(op::mul(gw, xh))));
  if (centred) dx = op::sub(dx, l.mean(gw));
  dx = in_dtype(op::mul(dx, factor), x.dtype());
  return std::vector<TensorBase>{op::reshape(dx, x.sizes().span()),
                                 l.channel_sums(op::mul(grad, xh)), l.channel_sums(grad)};
}

// dx with what comes through the mean, whose slope is 1 / n, and through the factor, whose slope is
// -factor^2 * xh / n.
TensorBase with_statistics(const Backward& b, TensorBase dx) {
  const TensorBase& x = b.tensor(0);
  const DType wide = stats_dtype(x.dtype());
  const Layout l(x, b.integer(3), b.integer(4), b.integer(5));
  const Scalar n(static_cast<double>(l.channels * l.inner));
  auto add = [&](const TensorBase& t) {
    Dims all = l.shape();
    TensorBase part = op::reshape(op::expand(op::div(t, n), all.span()), x.sizes().span());
    dx = op::add(dx, in_dtype(part, x.dtype()));
  };
  if (b.has_grad(1) && b.flag(6)) add(l.stats(b.result_grads[1]));
  if (b.has_grad(2)) {
    TensorBase factor = l.stats(b.results[2]);
    TensorBase xh = op::sub(l.values(in_dtype(x, wide)), l.stats(b.results[1]));
    TensorBase slope = op::mul(op::mul(factor, factor), op::mul(factor, xh));
    add(op::neg(op::mul(l.stats(b.result_grads[2]), slope)));
  }
  return dx;
}

void second_gradients(Backward& b) {
  const Layout l(b.tensor(1), b.integer(5), b.integer(6), b.integer(7));
  norm_second_gradients(b, l, b.flag(8));
}

}  // namespace

TS_OP({
    .schema = "_row_norm(Tensor input, Tensor? weight, Tensor? bias, int rows, int groups, int "
              "channels, bool centred, float eps) -> (Tensor y, Tensor mean, Tensor factor)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = forward,
    .saves = "input weight mean factor",
    .backward =
        [](Backward& b) {
          TensorBase weight = b.has(1) ? b.tensor(1) : TensorBase();
          Outputs r =
              op::_row_norm_backward(b.grad, b.tensor(0), b.results[1], b.results[2], weight,
                                     b.integer(3), b.integer(4), b.integer(5), b.flag(6));
          b.set(0, b.wants(0) ? with_statistics(b, r[0]) : r[0]);
          if (b.wants(1)) b.set(1, op::reshape(r[1], b.shape(1).span()));
          if (b.wants(2)) b.set(2, op::reshape(r[2], b.shape(2).span()));
        },
});

TS_OP({
    .schema = "_row_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor factor, Tensor? "
              "weight, int rows, int groups, int channels, bool centred) -> (Tensor, Tensor, "
              "Tensor)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = gradients,
    .saves = "grad input mean factor weight",
    .backward = second_gradients,
});

}  // namespace tessera
