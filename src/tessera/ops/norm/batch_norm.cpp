#include "second.h"
#include "tessera/driver/current.h"
#include "tessera/gen/norm.h"
#include "tessera/gen/reduce.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

// An operand as outer x channels x inner; what belongs to channels as 1 x channels x 1.
struct Channels {
  int64_t outer, channels, inner;

  explicit Channels(const TensorBase& x)
      : outer(x.size(0)),
        channels(x.size(1)),
        inner(outer * channels > 0 ? x.numel() / (outer * channels) : 0) {}
  int64_t count() const { return outer * inner; }
  Dims shape() const { return {outer, channels, inner}; }
  TensorBase values(const TensorBase& t) const { return op::reshape(t, shape().span()); }
  TensorBase stats(const TensorBase& t) const {
    Dims one{1, channels, 1};
    return op::reshape(t, one.span());
  }
  TensorBase weights(const TensorBase& w) const { return stats(w); }
  TensorBase mean(const TensorBase& t) const {
    Dims dims{0, 2};
    return op::mean(t, dims.span(), true);
  }
  TensorBase channel_sums(const TensorBase& t) const {
    Dims dims{0, 2};
    return op::sum(t, dims.span());
  }
};

TensorBase none_like(const TensorBase& x) {
  return new_empty({0}, stats_dtype(x.dtype()), x.device());
}

// (x - m) * a + b, each of a channel; m and b may be undefined.
TensorBase affine(const TensorBase& x, const TensorBase& m, const TensorBase& a,
                  const TensorBase& b) {
  const Channels c(x);
  if (has_kernel(x.device(), "channel_affine")) {
    TensorBase out = new_empty(x.sizes(), x.dtype(), x.device()), none = none_like(x);
    TensorBase in[] = {x, m.defined() ? m : none, a, b.defined() ? b : none};
    int64_t ints[] = {c.outer, c.channels};
    if (x.numel() > 0) launch("channel_affine", {&out, 1}, in, ints);
    return out;
  }
  TensorBase y = c.values(in_dtype(x, stats_dtype(x.dtype())));
  if (m.defined()) y = op::sub(y, c.stats(m));
  y = op::mul(y, c.stats(a));
  if (b.defined()) y = op::add(y, c.stats(b));
  return op::reshape(in_dtype(y, x.dtype()), x.sizes().span());
}

// Mean and variance of each channel, in wide numbers and without history.
void channel_moments(const TensorBase& x, double correction, TensorBase& var, TensorBase& mean) {
  const Channels c(x);
  const DType wide = stats_dtype(x.dtype());
  Dims dims{0};
  for (int d = 2; d < x.dim(); ++d) dims.push_back(d);
  if (has_kernel(x.device(), "var_mean")) {
    TensorBase out[] = {new_empty({c.channels}, wide, x.device()),
                        new_empty({c.channels}, wide, x.device())};
    if (c.channels > 0) launch("var_mean", out, {&x, 1}, dims.span(), {&correction, 1});
    var = out[0];
    mean = out[1];
    return;
  }
  TensorBase plain = alias(x, x.sizes(), x.strides(), x.storage_offset());
  Outputs r = op::var_mean(in_dtype(plain, wide), dims.span(), Scalar(correction), false);
  var = r[0];
  mean = r[1];
}

// running = running * (1 - momentum) + value * momentum.
void move_running(const TensorBase& running, const TensorBase& value, double momentum) {
  TensorBase next = op::add(op::mul(running, Scalar(1 - momentum)),
                            op::mul(in_dtype(value, running.dtype()), Scalar(momentum)));
  copy_into(running, next, false);
  count_write(running);
}

void check_vector(const char* what, const TensorBase& t, int64_t channels) {
  TS_CHECK(!t.defined() || t.numel() == channels, what, " should contain ", channels,
           " elements not ", t.defined() ? t.numel() : 0);
  TS_CHECK(!t.defined() || !is_complex(t.dtype()), what, " should not be complex");
}

// input, weight, bias, running mean and variance, training, momentum, eps -> y, mean, factor.
Outputs batch_norm(const TensorBase& x, const TensorBase& weight, const TensorBase& bias,
                   const TensorBase& running_mean, const TensorBase& running_var, bool training,
                   double momentum, double eps) {
  TS_CHECK(x.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ", x.dim());
  const int64_t channels = x.size(1);
  check_vector("weight", weight, channels);
  check_vector("bias", bias, channels);
  check_vector("running_mean", running_mean, channels);
  check_vector("running_var", running_var, channels);
  TS_CHECK(training || running_mean.defined(), "running_mean must be defined in evaluation mode");
  TS_CHECK(training || running_var.defined(), "running_var must be defined in evaluation mode");
  TS_CHECK_IMPLEMENTED(is_floating(x.dtype()), "\"batch_norm\" not implemented for '",
                       dtype_title(x.dtype()), "'");
  check_parameter_dtypes(x, {&weight, &bias, &running_mean, &running_var});
  const DType wide = stats_dtype(x.dtype());
  TensorBase mean, var;
  if (training) {
    channel_moments(x, 0, var, mean);
    const double n = static_cast<double>(Channels(x).count());
    if (running_mean.defined()) move_running(running_mean, mean, momentum);
    if (running_var.defined())
      move_running(running_var, op::mul(var, Scalar(n / (n - 1))), momentum);
  } else {
    mean = in_dtype(running_mean, wide);
    var = in_dtype(running_var, wide);
  }
  TensorBase factor = op::_inverse_root(var, Scalar(eps));
  return std::vector<TensorBase>{op::_batch_norm(x, weight, bias, mean, factor, training), mean,
                                 factor};
}

// The same with the statistics as PyTorch hands them out: empty where the running ones were used.
Outputs with_statistics(const TensorBase& x, const TensorBase& weight, const TensorBase& bias,
                        const TensorBase& running_mean, const TensorBase& running_var,
                        bool training, double momentum, double eps) {
  Outputs r = batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps);
  const DType dtype = given_stats_dtype(x, {weight, bias, running_mean, running_var});
  if (training) return std::vector<TensorBase>{r[0], in_dtype(r[1], dtype), in_dtype(r[2], dtype)};
  TensorBase none = new_empty({0}, dtype, x.device());
  return std::vector<TensorBase>{r[0], none, none};
}

// Without elements there is nothing to normalise, whatever the shape is.
TensorBase empty_batch(const TensorBase& x, const TensorBase& weight, const TensorBase& bias) {
  TensorBase y = op::clone(x);
  if (weight.defined() && weight.numel() > 0) y = op::mul(y, op::select(weight, 0, 0));
  if (bias.defined() && bias.numel() > 0) y = op::add(y, op::select(bias, 0, 0));
  return y;
}

// Those of `each` that are given have an element for each channel; `stats` are of the dtype that
// statistics are computed in.
void check_channels(const Call& c, const TensorBase& x, std::initializer_list<int> each,
                    std::initializer_list<int> stats) {
  TS_CHECK(x.dim() >= 2, c.op.name, "(): expected at least 2 dimensions for input, but got shape ",
           x.sizes());
  for (int arg : each) {
    check_shape_if_given(c, arg, {x.size(1)});
    if (c.has(arg)) check_floating(c, arg);
  }
  for (int arg : stats) check_dtype(c, arg, stats_dtype(x.dtype()));
}

Outputs gradients(const Call& call) {
  const TensorBase &g = call.tensor(0), &x = call.tensor(1), &mean = call.tensor(2),
                   &factor = call.tensor(3);
  check_channels(call, x, {2, 3, 4}, {2, 3});
  check_shape(call, 0, x.sizes().span());
  check_floating(call, 0);
  check_dtype(call, 1, g.dtype());
  TensorBase weight = call.maybe(4);
  const bool training = call.flag(5);
  const Channels c(x);
  const DType wide = stats_dtype(x.dtype());
  TensorBase sum_gx, sum_g;
  if (has_kernel(x.device(), "channel_sums")) {
    TensorBase out[] = {new_empty({c.channels}, wide, x.device()),
                        new_empty({c.channels}, wide, x.device())};
    TensorBase in[] = {g, x, mean};
    int64_t ints[] = {c.outer, c.channels};
    if (x.numel() > 0)
      launch("channel_sums", out, in, ints);
    else
      for (const TensorBase& t : out) fill(t, Scalar(0));
    sum_gx = out[0];
    sum_g = out[1];
  } else {
    TensorBase grad = c.values(in_dtype(g, wide));
    TensorBase centred = op::sub(c.values(in_dtype(x, wide)), c.stats(mean));
    sum_gx = c.channel_sums(op::mul(grad, centred));
    sum_g = c.channel_sums(grad);
  }
  TensorBase a = weight.defined() ? op::mul(factor, in_dtype(weight, wide)) : factor, dx;
  if (!training) {
    dx = affine(g, TensorBase(), a, TensorBase());
  } else {
    // a * (g - mean(g)) - (x - mean) * a * factor^2 * mean(g * (x - mean))
    const double n = static_cast<double>(c.count());
    TensorBase slope = op::mul(op::mul(factor, factor), op::mul(a, op::div(sum_gx, Scalar(-n))));
    TensorBase shift = op::mul(a, op::div(sum_g, Scalar(-n)));
    if (has_kernel(x.device(), "channel_affine2")) {
      dx = new_empty(x.sizes(), x.dtype(), x.device());
      TensorBase in[] = {g, x, mean, a, slope, shift};
      int64_t ints[] = {c.outer, c.channels};
      if (x.numel() > 0) launch("channel_affine2", {&dx, 1}, in, ints);
    } else {
      TensorBase centred = op::sub(c.values(in_dtype(x, wide)), c.stats(mean));
      TensorBase part = op::add(op::mul(centred, c.stats(slope)), c.stats(shift));
      dx = op::add(op::mul(c.values(in_dtype(g, wide)), c.stats(a)), part);
      dx = op::reshape(in_dtype(dx, x.dtype()), x.sizes().span());
    }
  }
  return std::vector<TensorBase>{dx, op::mul(sum_gx, factor), sum_g};
}

void second_gradients(Backward& b) {
  const TensorBase &g = b.tensor(0), &x = b.tensor(1);
  const Channels c(x);
  if (b.flag(5)) return norm_second_gradients(b, c, true);
  // With fixed statistics dx = g * w * factor, dw = sum(g * xh), db = sum(g).
  const DType wide = stats_dtype(x.dtype());
  TensorBase factor = c.stats(b.tensor(3)), grad = c.values(in_dtype(g, wide));
  TensorBase xh = op::mul(op::sub(c.values(in_dtype(x, wide)), c.stats(b.tensor(2))), factor);
  TensorBase w = b.has(4) ? c.stats(in_dtype(b.tensor(4), wide)) : TensorBase(), dg;
  auto add = [](const TensorBase& a, const TensorBase& t) {
    return a.defined() ? op::add(a, t) : t;
  };
  if (b.has_grad(0)) {
    TensorBase scaled = op::mul(c.values(in_dtype(b.result_grads[0], wide)), factor);
    if (b.wants(4)) b.set(4, c.channel_sums(op::mul(grad, scaled)));
    dg = w.defined() ? op::mul(scaled, w) : scaled;
  }
  if (b.has_grad(1)) {
    TensorBase gw = c.stats(b.result_grads[1]);
    dg = add(dg, op::mul(gw, xh));
    if (b.wants(1)) b.set(1, op::reshape(op::mul(op::mul(gw, grad), factor), x.sizes().span()));
  }
  if (b.has_grad(2)) dg = add(dg, op::expand(c.stats(b.result_grads[2]), c.shape().span()));
  if (b.wants(0) && dg.defined()) b.set(0, op::reshape(dg, g.sizes().span()));
}

std::string shape_text(const TensorBase& x) {
  std::string text = "torch.Size([";
  for (int d = 0; d < x.dim(); ++d) text += (d ? ", " : "") + std::to_string(x.size(d));
  return text + "])";
}

}  // namespace

TS_OP({
    .schema = "_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor factor, "
              "bool training) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      check_floating(c, 0);
      check_channels(c, x, {1, 2, 3, 4}, {3, 4});
      if (x.device().is_meta()) return new_empty(x.sizes(), x.dtype(), x.device());
      TensorBase weight = c.maybe(1);
      TensorBase a = weight.defined()
                         ? op::mul(c.tensor(4), in_dtype(weight, stats_dtype(x.dtype())))
                         : c.tensor(4);
      return affine(x, c.tensor(3), a, c.maybe(2));
    },
    .saves = "input weight mean factor",
    .backward =
        [](Backward& b) {
          TS_CHECK_IMPLEMENTED(!b.wants(3) && !b.wants(4),
                               "the derivative of batch_norm for running_mean and running_var is "
                               "not implemented.");
          TensorBase weight = b.has(1) ? b.tensor(1) : TensorBase();
          Outputs r = op::_batch_norm_backward(b.grad, b.tensor(0), b.tensor(3), b.tensor(4),
                                               weight, b.flag(5));
          b.set(0, r[0]);
          if (b.wants(1)) b.set(1, r[1]);
          if (b.wants(2)) b.set(2, r[2]);
        },
});

TS_OP({
    .schema = "_batch_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor factor, Tensor? "
              "weight, bool training) -> (Tensor, Tensor, Tensor)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = gradients,
    .saves = "grad input mean factor weight",
    .backward = second_gradients,
});

TS_OP({
    .schema = "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
              "Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, "
              "Tensor)",
    .doc = "batch_norm with the mean and the inverse deviation it used; those are empty where the "
           "running ones were.",
    .example = "torch.native_batch_norm(torch.ones(2, 3), None, None, None, None, True, 0.1, "
               "1e-5)[1]",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return with_statistics(c.tensor(0), c.maybe(1), c.maybe(2), c.maybe(3), c.maybe(4), c.flag(5),
                             c.number(6), c.number(7));
    },
});

TS_OP({
    .schema = "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor "
              "running_mean, Tensor running_var, bool training, float momentum, float eps) -> "
              "(Tensor, Tensor, Tensor)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return with_statistics(c.tensor(0), c.maybe(1), c.maybe(2), c.tensor(3), c.tensor(4),
                             c.flag(5), c.number(6), c.number(7));
    },
});
TS_OP({
    .schema = "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, bool training, "
              "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return with_statistics(c.tensor(0), c.maybe(1), c.maybe(2), TensorBase(), TensorBase(),
                             c.flag(3), c.number(4), c.number(5));
    },
});
TS_OP({
    .schema = "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, "
              "Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, "
              "Tensor, Tensor)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return with_statistics(c.tensor(0), c.maybe(1), c.maybe(2), c.tensor(3), c.tensor(4), false,
                             c.number(5), c.number(6));
    },
});

TS_OP({
    .schema = "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
              "Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) "
              "-> Tensor",
    .doc = "nn.functional.batch_norm with arguments in another order.",
    .example = "torch.batch_norm(torch.ones(2, 3), None, None, None, None, True, 0.1, 1e-5, False)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      if (c.tensor(0).numel() == 0) return empty_batch(c.tensor(0), c.maybe(1), c.maybe(2));
      return batch_norm(c.tensor(0), c.maybe(1), c.maybe(2), c.maybe(3), c.maybe(4), c.flag(5),
                        c.number(6), c.number(7))[0];
    },
    .samples = {{"T(3, 4), T(4), T(4), None, None, True, 0.1, 1e-5, False"}},
});

TS_OP({
    .schema = "nn.functional.batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, "
              "Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, "
              "float eps=1e-05) -> Tensor",
    .doc = "Brings each channel to mean zero and variance one over the batch, then scales and "
           "shifts it. In training by the batch's statistics, which move the running ones; else "
           "by those.",
    .example = "torch.nn.functional.batch_norm(torch.ones(2, 3), None, None, training=True)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      if (c.flag(5) && x.dim() >= 2)
        TS_CHECK_VALUE(Channels(x).count() != 1,
                       "Expected more than 1 value per channel when training, got input size ",
                       shape_text(x));
      if (x.numel() == 0) return empty_batch(x, c.maybe(3), c.maybe(4));
      return batch_norm(x, c.maybe(3), c.maybe(4), c.maybe(1), c.maybe(2), c.flag(5), c.number(6),
                        c.number(7))[0];
    },
    .samples = {{"T(3, 4), None, None, T(4), T(4), True"},
                {"T(2, 3, 5), None, None, None, None, True, 0.1, 1e-3"},
                {"T(2, 3, 2, 2), None, None, T(3), T(3), True"}},
});

}  // namespace tessera
