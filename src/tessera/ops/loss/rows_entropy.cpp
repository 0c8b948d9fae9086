// The cross entropy of rows against classes as one operator, where a backend has kernels for it:
// the logarithms of probabilities are never in memory, forward or backward.
#include "reduction.h"
#include "tessera/driver/current.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/bitwise.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/loss.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/softmax.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

DType wide_of(DType t) { return t == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

// What each row's gradient is multiplied with, in terms of operators: [N, 1].
TensorBase factors(const TensorBase& grad, const TensorBase& target, const TensorBase& weight,
                   int64_t ignore_index, Reduction how, DType dtype) {
  TensorBase ignored = op::eq(target, Scalar(ignore_index));
  TensorBase each = op::_to_dtype(op::logical_not(ignored), dtype);
  if (weight.defined())
    each = op::mul(each, op::index_select(weight, 0, op::where(ignored, Scalar(0), target)));
  if (how == Reduction::kMean) each = op::div(each, op::sum(each));
  return op::unsqueeze(op::mul(each, grad), 1);
}

void write_gradient(const TensorBase& out, const TensorBase& grad, const TensorBase& x,
                    const TensorBase& target, const TensorBase& weight, const TensorBase& total,
                    const TensorBase& log_sums, std::span<const int64_t> ints) {
  const DType wide = wide_of(x.dtype());
  TensorBase in[] = {op::contiguous(in_dtype(grad, wide)),
                     x,
                     op::contiguous(target),
                     total,
                     log_sums,
                     weight.defined() ? op::contiguous(in_dtype(weight, wide)) : weight};
  launch("rows_entropy_backward", {&out, 1}, std::span(in).first(weight.defined() ? 6 : 5), ints);
}

}  // namespace

namespace {

// Rows [N, C] with their classes [N] and weights [C].
void check_rows(const Call& c, int x, int reduction) {
  check_dim(c, x, 2);
  check_floating(c, x);
  check_shape(c, x + 1, {c.tensor(x).size(0)});
  check_dtype(c, x + 1, DType::kInt64);
  check_shape_if_given(c, x + 2, {c.tensor(x).size(1)});
  check_integer(c, reduction, 0, static_cast<int64_t>(Reduction::kSum));
}

}  // namespace

// [N, C] against [N]. log_sums: of each row, the logarithm of the sum of its exponentials.
TS_OP({
    .schema = "_rows_entropy(Tensor self, Tensor target, Tensor? weight, int ignore_index, int "
              "reduction, dtype dtype) -> (Tensor loss, Tensor total_weight, Tensor log_sums)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_rows(c, 0, 4);
      const TensorBase x = op::contiguous(c.tensor(0)), target = op::contiguous(c.tensor(1));
      const TensorBase weight = c.maybe(2);
      const DType wide = wide_of(x.dtype());
      const bool each = static_cast<Reduction>(c.integer(4)) == Reduction::kNone;
      TensorBase out[] = {
          new_empty(each ? target.sizes() : Dims(), c.dtype(5, x.dtype()), x.device()),
          new_empty({}, wide, x.device()), new_empty(target.sizes(), wide, x.device())};
      TensorBase in[] = {x, target,
                         weight.defined() ? op::contiguous(in_dtype(weight, wide)) : weight};
      const int64_t ints[] = {c.integer(3), c.integer(4)};
      launch("rows_entropy", out, std::span(in).first(weight.defined() ? 3 : 2), ints);
      return std::vector<TensorBase>{out[0], out[1], out[2]};
    },
    .saves = "self target weight total_weight log_sums",
    .backward =
        [](Backward& b) {
          TS_CHECK_IMPLEMENTED(!b.wants(2),
                               "The function 'nll_loss' is not differentiable with respect to "
                               "argument 'weight'. This input cannot have requires_grad True.");
          const TensorBase& x = b.tensor(0);
          const TensorBase weight = b.has(2) ? b.tensor(2) : TensorBase();
          if (b.is_last_use(0)) {
            TensorBase out = alias(x, x.sizes(), x.strides(), x.storage_offset());
            const int64_t ints[] = {b.integer(3), b.integer(4)};
            write_gradient(out, b.grad, x, b.tensor(1), weight, b.results[1], b.results[2], ints);
            b.set(0, out);
            return;
          }
          b.set(0, op::_rows_entropy_backward(b.grad, x, b.tensor(1), weight, b.results[1],
                                              b.results[2], b.integer(3), b.integer(4)));
        },
});

TS_OP({
    .schema = "_rows_entropy_backward(Tensor grad, Tensor self, Tensor target, Tensor? weight, "
              "Tensor total_weight, Tensor log_sums, int ignore_index, int reduction) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_rows(c, 1, 7);
      check_shape(c, 0,
                  c.integer(7) == static_cast<int64_t>(Reduction::kNone)
                      ? c.tensor(2).sizes().span()
                      : std::span<const int64_t>());
      check_shape(c, 4, {});
      check_shape(c, 5, c.tensor(2).sizes().span());
      for (int arg : {4, 5}) check_dtype(c, arg, wide_of(c.tensor(1).dtype()));
      const TensorBase x = op::contiguous(c.tensor(1));
      TensorBase out = new_empty(x.sizes(), x.dtype(), x.device());
      const int64_t ints[] = {c.integer(6), c.integer(7)};
      write_gradient(out, c.tensor(0), x, c.tensor(2), c.maybe(3), c.tensor(4), c.tensor(5), ints);
      return out;
    },
    .saves = "grad self target weight",
    .backward =
        [](Backward& b) {
          // The gradient is factor * (softmax(x) - onehot(target)): what follows is differentiable
          // again.
          const TensorBase x = b.tensor(1), target = b.tensor(2), given = b.grad;
          const TensorBase weight = b.has(3) ? b.tensor(3) : TensorBase();
          const auto how = static_cast<Reduction>(b.integer(7));
          const DType wide = wide_of(x.dtype());
          TensorBase p = op::softmax(op::_to_dtype(x, wide), 1), g = op::_to_dtype(given, wide);
          TensorBase k =
              factors(op::_to_dtype(b.tensor(0), wide), target, weight, b.integer(6), how, wide);
          const int64_t dim = 1;
          TensorBase mean = op::sum(op::mul(g, p), std::span(&dim, 1), true);
          if (b.wants(0)) {
            TensorBase classes = op::unsqueeze(
                op::where(op::eq(target, Scalar(b.integer(6))), Scalar(0), target), 1);
            TensorBase one = op::_to_dtype(op::ones_like(op::sum(b.tensor(0))), wide);
            TensorBase unit = factors(one, target, weight, b.integer(6), how, wide);
            TensorBase each =
                op::squeeze(op::mul(unit, op::sub(mean, op::gather(g, 1, classes))), 1);
            b.set(0, op::_to_dtype(how == Reduction::kNone ? each : op::sum(each),
                                   b.tensor(0).dtype()));
          }
          if (b.wants(1))
            b.set(1, op::_to_dtype(op::mul(op::mul(k, p), op::sub(g, mean)), x.dtype()));
        },
});

}  // namespace tessera
