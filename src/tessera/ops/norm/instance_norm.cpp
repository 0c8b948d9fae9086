#include "second.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/norm.h"
#include "tessera/gen/reduce.h"
#include "tessera/ops/call.h"
#include "tessera/ops/in_dtype.h"

namespace tessera {

namespace {

// running = running * (1 - momentum) + mean over the batch * momentum.
void move_running(const TensorBase& running, const TensorBase& stats, double momentum) {
  Dims batch{0};
  TensorBase value = op::mean(stats, batch.span());
  value = in_dtype(value, running.dtype());
  TensorBase next =
      op::add(op::mul(running, Scalar(1 - momentum)), op::mul(value, Scalar(momentum)));
  copy_into(running, next, false);
  count_write(running);
}

TensorBase instance_norm(const TensorBase& x, const TensorBase& weight, const TensorBase& bias,
                         const TensorBase& running_mean, const TensorBase& running_var,
                         bool use_input_stats, double momentum, double eps) {
  TS_CHECK(x.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ", x.dim());
  TS_CHECK(use_input_stats || (running_mean.defined() && running_var.defined()),
           "Expected running_mean and running_var to be defined when use_input_stats is false");
  if (!use_input_stats)
    return op::batch_norm(x, weight, bias, running_mean, running_var, false, momentum, eps, false);
  const int64_t rows = x.size(0) * x.size(1), channels = x.size(1);
  TS_CHECK_IMPLEMENTED(is_floating(x.dtype()), "\"instance_norm\" not implemented for '",
                       dtype_title(x.dtype()), "'");
  const char* names[] = {"weight", "bias", "running_mean", "running_var"};
  const TensorBase* given[] = {&weight, &bias, &running_mean, &running_var};
  for (int i = 0; i < 4; ++i)  // counted over the batch, as a batch norm of all rows sees them
    TS_CHECK(!given[i]->defined() || given[i]->numel() == channels, names[i], " should contain ",
             rows, " elements not ", given[i]->defined() ? given[i]->numel() * x.size(0) : 0);
  check_parameter_dtypes(x, {&weight, &bias, &running_mean, &running_var});
  if (running_mean.defined() || running_var.defined()) {
    Dims dims;
    for (int d = 2; d < x.dim(); ++d) dims.push_back(d);
    TensorBase plain = alias(x, x.sizes(), x.strides(), x.storage_offset());
    Outputs r = op::var_mean(plain, dims.span(), Scalar(1), false);
    if (running_mean.defined()) move_running(running_mean, r[1], momentum);
    if (running_var.defined()) move_running(running_var, r[0], momentum);
  }
  return op::_row_norm(x, weight, bias, rows, channels, 1, true, eps)[0];
}

}  // namespace

TS_OP({
    .schema = "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
              "Tensor? running_var, bool use_input_stats, float momentum, float eps, bool "
              "cudnn_enabled) -> Tensor",
    .doc = "nn.functional.instance_norm with arguments in another order.",
    .example = "torch.instance_norm(torch.ones(1, 2, 3), None, None, None, None, True, 0.1, 1e-5, "
               "False).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return instance_norm(c.tensor(0), c.maybe(1), c.maybe(2), c.maybe(3), c.maybe(4), c.flag(5),
                           c.number(6), c.number(7));
    },
});

TS_OP({
    .schema = "nn.functional.instance_norm(Tensor input, Tensor? running_mean=None, Tensor? "
              "running_var=None, Tensor? weight=None, Tensor? bias=None, bool "
              "use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor",
    .doc = "Brings each channel of each element to mean zero and variance one, then scales and "
           "shifts it.",
    .example = "torch.nn.functional.instance_norm(torch.ones(1, 2, 3)).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      if (c.flag(5) && x.dim() >= 2) {
        int64_t spatial = 1;
        for (int d = 2; d < x.dim(); ++d) spatial *= x.size(d);
        std::string shape;
        for (int d = 0; d < x.dim(); ++d) shape += (d ? ", " : "") + std::to_string(x.size(d));
        TS_CHECK_VALUE(spatial != 1,
                       "Expected more than 1 spatial element when training, got input size "
                       "torch.Size([",
                       shape, "])");
      }
      return instance_norm(x, c.maybe(3), c.maybe(4), c.maybe(1), c.maybe(2), c.flag(5),
                           c.number(6), c.number(7));
    },
    .samples = {{"T(2, 3, 5)"}, {"T(2, 3, 2, 2), None, None, T(3), T(3)"}},
});

}  // namespace tessera
