#include "tessera/nn/linear.h"

#include <cmath>

#include "tessera/nn/init.h"
#include "tessera/nn/text.h"

namespace tessera::nn {

Linear::Linear(int64_t in, int64_t out, const LinearOptions& o)
    : in_features(in), out_features(out) {
  register_parameter("weight", empty({out, in}, o.dtype, o.device));
  register_parameter("bias", o.bias ? empty({out}, o.dtype, o.device) : Tensor());
  reset_parameters();
}

void Linear::reset_parameters() {
  init::kaiming_uniform_(weight(), {.a = std::sqrt(5.0)});
  if (!bias().defined()) return;
  auto fan_in = static_cast<double>(weight().size(1));
  double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  init::uniform_(bias(), -bound, bound);
}

Tensor Linear::forward(const Tensor& input) { return linear(input, weight(), bias()); }

std::string Linear::extra_repr() const {
  return cat("in_features=", in_features, ", out_features=", out_features,
             ", bias=", bias().defined());
}

Bilinear::Bilinear(int64_t in1, int64_t in2, int64_t out, const LinearOptions& o)
    : in1_features(in1), in2_features(in2), out_features(out) {
  TS_CHECK_VALUE(in1 > 0, "in1_features must be > 0, but got ", in1);
  register_parameter("weight", empty({out, in1, in2}, o.dtype, o.device));
  register_parameter("bias", o.bias ? empty({out}, o.dtype, o.device) : Tensor());
  reset_parameters();
}

void Bilinear::reset_parameters() {
  double bound = 1 / std::sqrt(static_cast<double>(weight().size(1)));
  init::uniform_(weight(), -bound, bound);
  if (bias().defined()) init::uniform_(bias(), -bound, bound);
}

Tensor Bilinear::forward(const Tensor& input1, const Tensor& input2) {
  return bilinear(input1, input2, weight(), bias());
}

std::string Bilinear::extra_repr() const {
  return cat("in1_features=", in1_features, ", in2_features=", in2_features,
             ", out_features=", out_features, ", bias=", bias().defined());
}

}  // namespace tessera::nn
