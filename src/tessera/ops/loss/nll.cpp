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
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/modes.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

void check_weight(const TensorBase& weight, int64_t classes) {
  TS_CHECK(weight.dim() == 1 && weight.numel() == classes,
           "weight tensor should be defined either for all ", classes,
           " classes or no classes but got weight tensor of shape: ", weight.sizes());
}

// Shapes as nll_loss takes them: [C] and [], or [N, C, ...] and [N, ...].
void check_shapes(const TensorBase& x, const TensorBase& target) {
  TS_CHECK_VALUE(x.dim() >= 1, "Expected 1 or more dimensions (got ", x.dim(), ")");
  if (x.dim() == 1) {
    TS_CHECK(target.dim() == 0 || (target.dim() == 1 && target.size(0) == 1),
             "size mismatch (got input: ", x.sizes(), ", target: ", target.sizes(), ")");
    return;
  }
  if (x.dim() == 2)
    TS_CHECK(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
  TS_CHECK_VALUE(target.dim() > 0 && x.size(0) == target.size(0), "Expected input batch_size (",
                 x.size(0), ") to match target batch_size (", target.dim() ? target.size(0) : 1,
                 ").");
  Dims expected = x.sizes();
  expected.erase(1);
  TS_CHECK(target.sizes() == expected, "Expected target size ", expected, ", got ", target.sizes());
}

// Without a kernel: which targets do not count, and all as classes that exist.
struct Targets {
  TensorBase ignored, classes;
};
Targets targets_of(const TensorBase& target, int64_t ignore_index) {
  TensorBase ignored = op::eq(target, Scalar(ignore_index));
  return {ignored, op::where(ignored, Scalar(0), target)};
}
// Weights of the targets, zero where they do not count.
TensorBase weights_of(const TensorBase& weight, const Targets& t, DType dtype) {
  TensorBase counts = op::_to_dtype(op::logical_not(t.ignored), dtype);
  if (!weight.defined()) return counts;
  const Dims flat{-1};
  TensorBase picked = op::index_select(weight, 0, op::reshape(t.classes, flat.span()));
  return op::mul(op::reshape(picked, t.classes.sizes().span()), counts);
}

void no_gradient_by_weight(const Backward& b, int weight) {
  TS_CHECK_IMPLEMENTED(!b.wants(weight),
                       "The function 'nll_loss' is not differentiable with respect to argument "
                       "'weight'. This input cannot have requires_grad True.");
}

TensorBase optional(const Backward& b, int i) { return b.has(i) ? b.tensor(i) : TensorBase(); }

}  // namespace

namespace {

void check_reduction(const Call& c, int arg) {
  check_integer(c, arg, 0, static_cast<int64_t>(Reduction::kSum));
}
void check_classes(const Call& c, int target, int weight, DType dtype, int64_t classes) {
  check_dim(c, target, 2);
  check_dtype(c, target, DType::kInt64);
  check_shape_if_given(c, weight, {classes});
  TS_CHECK(!c.has(weight) || c.tensor(weight).dtype() == dtype, "expected scalar type ",
           dtype_title(dtype), " but found ", dtype_title(c.tensor(weight).dtype()));
}

}  // namespace

// [N, C, M] against classes [N, M].
TS_OP({
    .schema = "_nll_loss(Tensor self, Tensor target, Tensor? weight, int ignore_index, int "
              "reduction) -> (Tensor loss, Tensor total_weight)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_dim(c, 0, 3);
      check_reduction(c, 4);
      check_classes(c, 1, 2, c.tensor(0).dtype(), c.tensor(0).size(1));
      check_shape(c, 1, {c.tensor(0).size(0), c.tensor(0).size(2)});
      const TensorBase x = op::contiguous(c.tensor(0)), target = op::contiguous(c.tensor(1));
      const TensorBase weight = c.maybe(2);
      const auto how = static_cast<Reduction>(c.integer(4));
      if (has_kernel(x.device(), "nll_loss")) {
        TensorBase out[] = {
            new_empty(how == Reduction::kNone ? target.sizes() : Dims(), x.dtype(), x.device()),
            new_empty({}, x.dtype(), x.device())};
        TensorBase in[] = {x, target, weight.defined() ? op::contiguous(weight) : weight};
        const int64_t ints[] = {c.integer(3), c.integer(4)};
        launch("nll_loss", out, std::span(in).first(weight.defined() ? 3 : 2), ints);
        return {out[0], out[1]};
      }
      const Targets t = targets_of(target, c.integer(3));
      TensorBase picked = op::squeeze(op::gather(x, 1, op::unsqueeze(t.classes, 1)), 1);
      TensorBase w = weights_of(weight, t, x.dtype());
      // Not by multiplication: what is ignored may be infinite.
      TensorBase losses = op::where(t.ignored, Scalar(0.0), op::neg(op::mul(picked, w)));
      TensorBase total = op::sum(w);
      if (how == Reduction::kNone) return {losses, total};
      TensorBase sum = op::sum(losses);
      return {how == Reduction::kMean ? op::div(sum, total) : sum, total};
    },
    .saves = "target weight total_weight",
    .backward =
        [](Backward& b) {
          no_gradient_by_weight(b, 2);
          b.set(0, op::_nll_loss_backward(b.grad, b.tensor(1), b.results[1], optional(b, 2),
                                          b.shape(0)[1], b.integer(3), b.integer(4)));
        },
    .aten = "nll_loss_forward",
});

TS_OP({
    .schema = "_nll_loss_backward(Tensor grad, Tensor target, Tensor total_weight, Tensor? weight, "
              "int classes, int ignore_index, int reduction) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_reduction(c, 6);
      check_integer(c, 4, 0);
      check_classes(c, 1, 3, c.tensor(0).dtype(), c.integer(4));
      check_shape(c, 0,
                  c.integer(6) == static_cast<int64_t>(Reduction::kNone)
                      ? c.tensor(1).sizes().span()
                      : std::span<const int64_t>());
      check_shape(c, 2, {});
      check_dtype(c, 2, c.tensor(0).dtype());
      const TensorBase g = op::contiguous(c.tensor(0)), target = op::contiguous(c.tensor(1));
      const TensorBase weight = c.maybe(3);
      const Dims shape{target.size(0), c.integer(4), target.size(1)};
      if (has_kernel(g.device(), "nll_loss_backward")) {
        TensorBase out = new_empty(shape, g.dtype(), g.device());
        TensorBase in[] = {g, target, c.tensor(2),
                           weight.defined() ? op::contiguous(weight) : weight};
        const int64_t ints[] = {c.integer(5), c.integer(6)};
        launch("nll_loss_backward", {&out, 1}, std::span(in).first(weight.defined() ? 4 : 3), ints);
        return out;
      }
      const Targets t = targets_of(target, c.integer(5));
      TensorBase each = op::neg(op::mul(weights_of(weight, t, g.dtype()), g));
      if (static_cast<Reduction>(c.integer(6)) == Reduction::kMean)
        each = op::div(each, c.tensor(2));
      return op::scatter(op::new_zeros(g, shape.span()), 1, op::unsqueeze(t.classes, 1),
                         op::unsqueeze(each, 1));
    },
    .saves = "target weight",
    .backward =
        [](Backward& b) {  // linear in the gradient, as the loss is in its input
          no_gradient_by_weight(b, 3);
          b.set(0,
                op::_nll_loss(b.grad, b.tensor(1), optional(b, 3), b.integer(5), b.integer(6))[0]);
        },
    .aten = "nll_loss_backward",
});

namespace {

TensorBase nll(const TensorBase& x, const TensorBase& target, const TensorBase& weight,
               int64_t ignore_index, Reduction how) {
  check_shapes(x, target);
  const int64_t classes = x.size(x.dim() == 1 ? 0 : 1);
  if (weight.defined()) check_weight(weight, classes);
  TS_CHECK(target.dtype() == DType::kInt64 || target.dtype() == DType::kUInt8,
           "expected target dtype to be Long or Byte, but got ", dtype_title(target.dtype()));
  TensorBase t = in_dtype(target, DType::kInt64);
  const int64_t n = x.dim() == 1 ? 1 : x.size(0);
  const int64_t inner = n == 0 ? 0 : target.numel() / n;
  const Dims flat{n, classes, inner}, flat_target{n, inner};
  TensorBase loss = op::_nll_loss(op::reshape(x, flat.span()), op::reshape(t, flat_target.span()),
                                  weight, ignore_index, static_cast<int64_t>(how))[0];
  return how == Reduction::kNone ? op::reshape(loss, target.sizes().span()) : loss;
}

// Of logarithms of probabilities against target probabilities.
TensorBase against_probabilities(const TensorBase& log_p, const TensorBase& given,
                                 const TensorBase& weight, double smoothing, Reduction how) {
  const int class_dim = log_p.dim() == 1 ? 0 : 1;
  const int64_t classes = log_p.size(class_dim), dim = class_dim;
  TS_CHECK(is_floating(given.dtype()),
           "Expected floating point type for target with class probabilities, got ", given.dtype());
  TensorBase target = given;
  if (smoothing > 0)
    target = op::add(op::mul(given, Scalar(1 - smoothing)),
                     Scalar(smoothing / static_cast<double>(classes)));
  TensorBase losses = op::mul(log_p, target);
  if (weight.defined()) {
    TS_CHECK(weight.dim() == 1 && weight.numel() == classes,
             "cross_entropy: weight tensor should be defined either for all ", classes,
             " classes or no classes but got weight tensor of shape: ", weight.sizes());
    Dims shape(static_cast<size_t>(log_p.dim()), 1);
    shape[static_cast<size_t>(class_dim)] = classes;
    losses = op::mul(losses, op::reshape(weight, shape.span()));
  }
  losses = op::neg(losses);
  if (how == Reduction::kNone) return op::sum(losses, std::span(&dim, 1));
  TensorBase total = op::sum(losses);
  if (how == Reduction::kSum) return total;
  return op::div(total, Scalar(static_cast<double>(log_p.numel()) / static_cast<double>(classes)));
}

bool takes_rows(const TensorBase& x, const TensorBase& target, const TensorBase& weight) {
  return x.dim() == 2 && x.numel() > 0 && is_floating(x.dtype()) &&
         target.dtype() == DType::kInt64 && has_kernel(x.device(), "rows_entropy") &&
         (!weight.defined() || (weight.dim() == 1 && weight.numel() == x.size(1)));
}

// The share of all classes in label smoothing.
TensorBase smooth_part(const TensorBase& log_p, const TensorBase& target, const TensorBase& weight,
                       int64_t ignore_index, Reduction how) {
  const int class_dim = log_p.dim() == 1 ? 0 : 1;
  const int64_t classes = log_p.size(class_dim), dim = class_dim;
  TensorBase each = log_p;
  if (weight.defined()) {
    Dims shape(static_cast<size_t>(log_p.dim()), 1);
    shape[static_cast<size_t>(class_dim)] = classes;
    each = op::mul(log_p, op::reshape(weight, shape.span()));
  }
  const Targets t = targets_of(target, ignore_index);
  // The sum over the classes, and the number of targets, may be beyond half floats.
  const DType wide = is_reduced_floating(log_p.dtype()) ? DType::kFloat32 : log_p.dtype();
  TensorBase losses =
      op::reshape(op::sum(each, std::span(&dim, 1), false, wide), target.sizes().span());
  losses = op::where(t.ignored, Scalar(0.0), op::neg(losses));
  if (how != Reduction::kMean) return reduced(losses, how);
  return op::div(op::sum(losses), op::sum(weights_of(weight, t, wide)));
}

}  // namespace

TS_OP({
    .schema = "nn.functional.nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? "
              "size_average=None, int ignore_index=-100, bool? reduce=None, str "
              "reduction=\"mean\") -> Tensor",
    .doc = "The negative of the input at each target class: of logarithms of probabilities, the "
           "negative log likelihood.",
    .example = "torch.nn.functional.nll_loss(torch.tensor([[-1.0, -0.5]]), torch.tensor([1]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const Reduction how = reduction_of(c, 3, 5, 6);
      return nll(c.tensor(0), c.tensor(1), c.maybe(2), c.integer(4), how);
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 5), I([0, 4, 2], 5)"}, {"T(3, 5), I([0, 4, 2], 5), P(5)"}},
});

TS_OP({
    .schema = "nn.functional.cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? "
              "size_average=None, int ignore_index=-100, bool? reduce=None, str "
              "reduction=\"mean\", float label_smoothing=0.0) -> Tensor",
    .doc = "The cross entropy of the softmax over classes (dimension 1) against classes, or "
           "against probabilities of the input's shape.",
    .example = "torch.nn.functional.cross_entropy(torch.tensor([[1.0, 2.0]]), torch.tensor([1]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const Reduction how = reduction_of(c, 3, 5, 6);
      TensorBase x = c.tensor(0);
      const TensorBase& target = c.tensor(1);
      const TensorBase weight = c.maybe(2);
      const double smoothing = c.number(7);
      TS_CHECK(smoothing >= 0 && smoothing <= 1,
               "label_smoothing must be between 0.0 and 1.0. Got: ", smoothing);
      const bool probabilities = x.sizes() == target.sizes();
      if (probabilities) {
        TS_CHECK(is_floating(target.dtype()),
                 "Expected floating point type for target with class probabilities, got ",
                 dtype_title(target.dtype()));
        TS_CHECK(c.integer(4) < 0, "ignore_index is not supported for floating point target");
      } else {
        check_shapes(x, target);
      }
      // On a GPU autocast asks for float32: of the result. What is read may stay as it is.
      const bool widened = is_reduced_floating(x.dtype()) && autocasts(x.device().type);
      if (!probabilities && smoothing == 0 && takes_rows(x, target, weight))
        return op::_rows_entropy(x, target, weight, c.integer(4), static_cast<int64_t>(how),
                                 widened ? DType::kFloat32 : x.dtype())[0];
      if (widened) x = op::_to_dtype(x, DType::kFloat32);
      TensorBase log_p = op::log_softmax(x, x.dim() == 1 ? 0 : 1);
      if (probabilities) return against_probabilities(log_p, target, weight, smoothing, how);
      TensorBase loss = nll(log_p, target, weight, c.integer(4), how);
      if (smoothing == 0) return loss;
      TensorBase smooth = smooth_part(log_p, target, weight, c.integer(4), how);
      const double classes = static_cast<double>(x.size(x.dim() == 1 ? 0 : 1));
      TensorBase both = op::add(op::mul(loss, Scalar(1 - smoothing)),
                                op::mul(smooth, Scalar(smoothing / classes)));
      return in_dtype(both, loss.dtype());
    },
    .aten = "cross_entropy_loss",
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 5), I([0, 4, 2], 5)"},
                {"T(3, 5), I([0, 4, 2], 5), label_smoothing=0.1"},
                {"T(3, 5), P(3, 5)"}},
});

}  // namespace tessera
