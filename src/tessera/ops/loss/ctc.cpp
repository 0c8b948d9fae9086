#include "reduction.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/loss.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

// Everything the kernels need: [T, N, C] logarithms of probabilities; targets [N, S] or one after
// the other; lengths on the host.
struct Shapes {
  int64_t steps, batch, classes, longest;  // longest target
  Dims input_lengths, target_lengths;
};

// The arguments log_probs and targets are those from `data` on, the lengths and blank from
// `lengths`.
Shapes checked(const Call& c, int data, int lengths) {
  const TensorBase &log_probs = c.tensor(data), &targets = c.tensor(data + 1);
  const Dims input_lengths = c.ints(lengths), target_lengths = c.ints(lengths + 1);
  const int64_t blank = c.integer(lengths + 2);
  check_dim(c, data, 3);
  TS_CHECK(log_probs.dtype() == DType::kFloat32 || log_probs.dtype() == DType::kFloat64,
           "\"ctc_loss_cpu\" not implemented for ", log_probs.dtype());
  TS_CHECK(targets.dtype() == DType::kInt64 || targets.dtype() == DType::kInt32,
           "Expected tensor for argument #2 'targets' to have one of the following scalar types: "
           "Long, Int; but got ",
           targets.dtype(), " instead");
  TS_CHECK(log_probs.numel() > 0, "log_probs tensor must not be empty");
  TS_CHECK(targets.dim() > 0,
           "Expected tensor to have at least 1 dimension for argument #2 "
           "'targets'");
  Shapes s{log_probs.size(0), log_probs.size(1), log_probs.size(2), 0,
           input_lengths,     target_lengths};
  TS_CHECK(0 <= blank && blank < s.classes, "blank must be in label range");
  TS_CHECK(input_lengths.ndim() == s.batch, "input_lengths must be of size batch_size");
  TS_CHECK(target_lengths.ndim() == s.batch, "target_lengths must be of size batch_size");
  int64_t total = 0;
  for (int64_t i = 0; i < s.batch; ++i) {
    const int64_t in = input_lengths[static_cast<size_t>(i)];
    const int64_t out = target_lengths[static_cast<size_t>(i)];
    TS_CHECK(in >= 0 && in <= s.steps, "Expected input_lengths to have value at most ", s.steps,
             ", but got value ", in);
    TS_CHECK(out >= 0, "Expected target_lengths to have value at least 0, but got value ", out);
    TS_CHECK(!__builtin_add_overflow(total, out, &total),
             "Expected target_lengths to have a sum that fits 64 bits");
    s.longest = std::max(s.longest, out);
  }
  if (targets.dim() == 1)
    TS_CHECK(targets.size(0) >= total, "Expected tensor to have size at least ", total,
             " at dimension 0, but got size ", targets.size(0), " for argument #2 'targets'");
  else
    TS_CHECK(targets.dim() == 2 && targets.size(0) == s.batch && targets.size(1) >= s.longest,
             "Expected tensor to have size at least ", s.longest, " at dimension 1, but got size ",
             targets.dim() > 1 ? targets.size(1) : 0, " for argument #2 'targets'");
  return s;
}

Dims kernel_ints(int64_t blank, bool zero_infinity, const Dims& inputs, const Dims& targets) {
  Dims ints{blank, zero_infinity};
  for (int64_t n : inputs) ints.push_back(n);
  for (int64_t n : targets) ints.push_back(n);
  return ints;
}

}  // namespace

// Losses of each sequence, and the forward sums that the gradient needs.
TS_OP({
    .schema = "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
              "target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor "
              "neg_log_likelihood, Tensor log_alpha)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const Shapes s = checked(c, 0, 2);
      const TensorBase in[] = {op::contiguous(c.tensor(0)),
                               op::contiguous(in_dtype(c.tensor(1), DType::kInt64))};
      TensorBase out[] = {
          new_empty({s.batch}, in[0].dtype(), in[0].device()),
          new_empty({s.batch, s.steps, 2 * s.longest + 1}, in[0].dtype(), in[0].device())};
      const Dims ints = kernel_ints(c.integer(4), c.flag(5), s.input_lengths, s.target_lengths);
      launch("ctc_loss", out, in, ints.span());
      return {out[0], out[1]};
    },
    .saves = "log_probs targets result log_alpha",
    .backward =
        [](Backward& b) {
          b.set(0,
                op::_ctc_loss_backward(b.grad, b.tensor(0), b.tensor(1), b.results[0], b.results[1],
                                       b.args[2].ints, b.args[3].ints, b.integer(4), b.flag(5)));
        },
});

TS_OP({
    .schema = "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, Tensor loss, "
              "Tensor log_alpha, int[] input_lengths, int[] target_lengths, int blank, bool "
              "zero_infinity) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const Shapes s = checked(c, 1, 5);
      check_shape(c, 0, {s.batch});
      check_shape(c, 3, {s.batch});
      check_shape(c, 4, {s.batch, s.steps, 2 * s.longest + 1});
      for (int arg : {0, 3, 4}) check_dtype(c, arg, c.tensor(1).dtype());
      const TensorBase in[] = {op::contiguous(c.tensor(0)), op::contiguous(c.tensor(1)),
                               op::contiguous(in_dtype(c.tensor(2), DType::kInt64)),
                               op::contiguous(c.tensor(3)), op::contiguous(c.tensor(4))};
      TensorBase out = new_empty(in[1].sizes(), in[1].dtype(), in[1].device());
      const Dims ints = kernel_ints(c.integer(7), c.flag(8), c.ints(5), c.ints(6));
      launch("ctc_loss_backward", {&out, 1}, in, ints.span());
      return out;
    },
    .backward =
        [](Backward&) {
          raise(ErrorKind::kRuntime, "the derivative for '_ctc_loss_backward' is not implemented.");
        },
});

namespace {

Outputs ctc(const Call& c, const Dims& inputs, const Dims& targets_lengths) {
  const Reduction how = reduction_named(c.text(5));
  const bool zero_infinity = c.flag(6);
  TensorBase log_probs = c.tensor(0), targets = c.tensor(1);
  const bool single = log_probs.dim() != 3;
  if (single) {
    log_probs = op::unsqueeze(log_probs, 1);
    if (targets.dim() == 1) targets = op::unsqueeze(targets, 0);
  }
  TensorBase loss = op::_ctc_loss(log_probs, targets, inputs.span(), targets_lengths.span(),
                                  c.integer(4), zero_infinity)[0];
  if (zero_infinity)
    loss = op::where(op::eq(loss, Scalar(std::numeric_limits<double>::infinity())),
                     op::zeros_like(loss), loss);
  if (how == Reduction::kMean) {
    // Of each sequence by the length of its target first.
    TensorBase host = new_empty({targets_lengths.ndim()}, DType::kInt64, Device{});
    for (int i = 0; i < targets_lengths.ndim(); ++i)
      reinterpret_cast<int64_t*>(host.raw())[i] =
          std::max<int64_t>(1, targets_lengths[static_cast<size_t>(i)]);
    TensorBase there = loss.device().is_cpu() ? host : op::_to_device(host, loss.device(), false);
    return op::mean(op::div(loss, op::_to_dtype(there, loss.dtype())));
  }
  if (how == Reduction::kSum) return op::sum(loss);
  return single ? op::squeeze(loss, 0) : loss;
}

}  // namespace

TS_OP({
    .schema = "nn.functional.ctc_loss(Tensor log_probs, Tensor targets, int[1] input_lengths, "
              "int[1] target_lengths, int blank=0, str reduction=\"mean\", bool "
              "zero_infinity=False) -> Tensor",
    .doc = "The connectionist temporal classification loss: the negative log likelihood of target "
           "sequences over all alignments with the steps of the input.",
    .example = "torch.nn.functional.ctc_loss(torch.zeros(4, 1, 3), torch.tensor([[1, 2]]), (4,), "
               "(2,))",
    .forms = kFunction,
    .run = [](const Call& c) { return ctc(c, c.ints(2), c.ints(3)); },
    .autocast = Autocast::kFloat32Cpu,
});
TS_OP({
    .schema = "nn.functional.ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, "
              "Tensor target_lengths, int blank=0, str reduction=\"mean\", bool "
              "zero_infinity=False) -> Tensor",
    .doc = "The connectionist temporal classification loss, with lengths in tensors.",
    .example = "torch.nn.functional.ctc_loss(torch.zeros(4, 1, 3), torch.tensor([[1, 2]]), "
               "torch.tensor([4]), torch.tensor([2]))",
    .forms = kFunction,
    .run =
        [](const Call& c) {
          TS_CHECK(is_integral(c.tensor(2).dtype(), false), "input_lengths must be integral");
          TS_CHECK(is_integral(c.tensor(3).dtype(), false), "target_lengths must be integral");
          return ctc(c, host_ints(c.tensor(2)), host_ints(c.tensor(3)));
        },
    .autocast = Autocast::kFloat32Cpu,
});

}  // namespace tessera
