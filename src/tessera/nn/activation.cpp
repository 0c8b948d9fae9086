#include "tessera/nn/activation.h"

#include "tessera/nn/init.h"
#include "tessera/nn/text.h"

namespace tessera::nn {

namespace {
std::string and_inplace(bool inplace) { return inplace ? ", inplace=True" : ""; }
}  // namespace

Tensor Pointwise::forward(const Tensor& input) {
  return Tensor(inplace_ ? in_place_(input) : out_(input));
}
std::string Pointwise::extra_repr() const { return inplace_ && shown_ ? "inplace=True" : ""; }

ReLU::ReLU(InplaceOptions o) : Pointwise(op::relu, op::relu_, o) {}
SELU::SELU(InplaceOptions o) : Pointwise(op::selu, op::selu_, o) {}
SiLU::SiLU(InplaceOptions o) : Pointwise(op::silu, op::silu_, o) {}
Mish::Mish(InplaceOptions o) : Pointwise(op::mish, op::mish_, o) {}
// PyTorch prints these two without their option.
Hardsigmoid::Hardsigmoid(InplaceOptions o)
    : Pointwise(op::hardsigmoid, op::hardsigmoid_, o, false) {}
Hardswish::Hardswish(InplaceOptions o) : Pointwise(op::hardswish, op::hardswish_, o, false) {}
Sigmoid::Sigmoid() : Pointwise(op::sigmoid) {}
Tanh::Tanh() : Pointwise(op::tanh) {}
LogSigmoid::LogSigmoid() : Pointwise(op::logsigmoid) {}
Softsign::Softsign() : Pointwise(op::softsign) {}
Tanhshrink::Tanhshrink() : Pointwise(op::tanhshrink) {}

Tensor Threshold::forward(const Tensor& x) {
  return Tensor(inplace ? op::threshold_(x, threshold, value) : op::threshold(x, threshold, value));
}
std::string Threshold::extra_repr() const {
  return "threshold=" + py(threshold) + ", value=" + py(value) + and_inplace(inplace);
}

Tensor RReLU::forward(const Tensor& x) {
  auto& [lower, upper, inplace] = options;
  return Tensor(inplace ? op::rrelu_(x, lower, upper, is_training())
                        : op::rrelu(x, lower, upper, is_training()));
}
std::string RReLU::extra_repr() const {
  return "lower=" + py(options.lower) + ", upper=" + py(options.upper) +
         and_inplace(options.inplace);
}

Hardtanh::Hardtanh(HardtanhOptions o) : options(o) {
  TS_CHECK_VALUE(o.max_val > o.min_val, "max_val must be larger than min_val");
}
Tensor Hardtanh::forward(const Tensor& x) {
  auto& [low, high, inplace] = options;
  return Tensor(inplace ? op::hardtanh_(x, low, high) : op::hardtanh(x, low, high));
}
std::string Hardtanh::extra_repr() const {
  return "min_val=" + py(options.min_val) + ", max_val=" + py(options.max_val) +
         and_inplace(options.inplace);
}
std::string ReLU6::extra_repr() const { return options.inplace ? "inplace=True" : ""; }

Tensor ELU::forward(const Tensor& x) {
  return Tensor(inplace ? op::elu_(x, alpha) : op::elu(x, alpha));
}
std::string ELU::extra_repr() const { return "alpha=" + py(alpha) + and_inplace(inplace); }
Tensor CELU::forward(const Tensor& x) {
  return Tensor(inplace ? op::celu_(x, alpha) : op::celu(x, alpha));
}

Tensor GLU::forward(const Tensor& x) { return glu(x, dim); }
std::string GLU::extra_repr() const { return cat("dim=", dim); }

Tensor GELU::forward(const Tensor& x) { return gelu(x, approximate); }
std::string GELU::extra_repr() const { return "approximate=" + py_quoted(approximate); }

Tensor Hardshrink::forward(const Tensor& x) { return hardshrink(x, lambd); }
std::string Hardshrink::extra_repr() const { return py(lambd); }
Tensor Softshrink::forward(const Tensor& x) { return softshrink(x, lambd); }

Tensor LeakyReLU::forward(const Tensor& x) {
  return Tensor(inplace ? op::leaky_relu_(x, negative_slope) : op::leaky_relu(x, negative_slope));
}
std::string LeakyReLU::extra_repr() const {
  return "negative_slope=" + py(negative_slope) + and_inplace(inplace);
}

Tensor Softplus::forward(const Tensor& x) { return softplus(x, options.beta, options.threshold); }
std::string Softplus::extra_repr() const {
  return "beta=" + py(options.beta) + ", threshold=" + py(options.threshold);
}

PReLU::PReLU(int64_t n, const PReLUOptions& o) : num_parameters(n) {
  register_parameter("weight", empty({n}, o.dtype, o.device));
  init::constant_(weight(), o.init);
}
Tensor PReLU::forward(const Tensor& x) { return prelu(x, weight()); }
std::string PReLU::extra_repr() const { return cat("num_parameters=", num_parameters); }

Tensor Softmax::forward(const Tensor& x) { return softmax(x, dim); }
std::string Softmax::extra_repr() const { return cat("dim=", dim); }
Tensor Softmin::forward(const Tensor& x) { return softmax(-x, dim); }
Tensor LogSoftmax::forward(const Tensor& x) { return log_softmax(x, dim); }
Tensor Softmax2d::forward(const Tensor& x) {
  TS_CHECK_VALUE(x.dim() == 3 || x.dim() == 4, "Softmax2d: expected input to be 3D or 4D, got ",
                 x.dim(), "D instead");
  return softmax(x, -3);
}

}  // namespace tessera::nn
