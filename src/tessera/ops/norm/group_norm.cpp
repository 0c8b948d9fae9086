#include "second.h"
#include "tessera/gen/norm.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"

namespace tessera {

namespace {

void check_vector(const char* what, const TensorBase& t, int64_t channels, const TensorBase& x) {
  TS_CHECK(!t.defined() || (t.dim() == 1 && t.numel() == channels), "Expected ", what,
           " to be a vector of size equal to the number of channels in input, but got ", what,
           " of shape ", t.defined() ? t.sizes() : Dims(), " and input of shape ", x.sizes());
}

}  // namespace

TS_OP({
    .schema = "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int "
              "HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
    .doc = "group_norm with the mean and the inverse deviation it used.",
    .example = "torch.native_group_norm(torch.ones(1, 4, 2), None, None, 1, 4, 2, 2, 1e-5)[1]",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const int64_t n = c.integer(3), channels = c.integer(4), groups = c.integer(6);
      TS_CHECK(groups > 0, "Expected num groups to be greater than 0, got ", groups);
      TS_CHECK(channels % groups == 0,
               "Expected number of channels in input to be divisible by "
               "num_groups, but got input of shape ",
               x.sizes(), " and num_groups=", groups);
      const int64_t inner = c.integer(5);
      TS_CHECK(n >= 0, "Expected N to be at least 0, got ", n);
      TS_CHECK(channels >= 0, "Expected C to be at least 0, got ", channels);
      TS_CHECK(inner >= 0, "Expected HxW to be greater than 0, got ", inner);
      // By division: the product of three integers may not fit.
      const int64_t count = x.numel();
      const bool fits = count == 0 ? n == 0 || channels == 0 || inner == 0
                                   : n > 0 && channels > 0 && count % n == 0 &&
                                         count / n % channels == 0 && count / n / channels == inner;
      TS_CHECK(fits, "Expected X.numel() == N * C * HxW to be true, but got an input of shape ",
               x.sizes(), " with N=", n, ", C=", channels, " and HxW=", inner);
      TensorBase weight = c.maybe(1), bias = c.maybe(2);
      check_vector("weight", weight, channels, x);
      check_vector("bias", bias, channels, x);
      check_parameter_dtypes(x, {&weight, &bias});
      TS_CHECK_IMPLEMENTED(is_floating(x.dtype()), "\"GroupNormKernelImpl\" not implemented for '",
                           dtype_title(x.dtype()), "'");
      Outputs r =
          op::_row_norm(x, weight, bias, n * groups, groups, channels / groups, true, c.number(7));
      Dims stats{n, groups};
      const DType dtype = given_stats_dtype(x, {weight, bias});
      return std::vector<TensorBase>{r[0], op::reshape(in_dtype(r[1], dtype), stats.span()),
                                     op::reshape(in_dtype(r[2], dtype), stats.span())};
    },
});

TS_OP({
    .schema = "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? "
              "bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
    .doc = "Brings groups of channels of each element to mean zero and variance one, then scales "
           "and shifts each channel.",
    .example = "torch.group_norm(torch.ones(1, 4, 2), 2).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      TS_CHECK(x.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ",
               x.dim());
      const int64_t n = x.size(0), channels = x.size(1), groups = c.integer(1);
      const int64_t inner = n * channels > 0 ? x.numel() / (n * channels) : 0;
      Outputs r =
          op::native_group_norm(x, c.maybe(2), c.maybe(3), n, channels, inner, groups, c.number(4));
      return r[0];
    },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(2, 6, 3), 3"},
                {"T(2, 6, 3, 2), 2, T(6), T(6), 1e-3"},
                {"T(2, 6), 2, T(6)"},
                {"T(1, 4, 5), 1"}},
});

}  // namespace tessera
