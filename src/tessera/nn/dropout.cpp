#include "tessera/nn/dropout.h"

#include "tessera/nn/functional.h"
#include "tessera/nn/text.h"

namespace tessera::nn {

DropoutBase::DropoutBase(double p, InplaceOptions o) : p(p), inplace(o.inplace) {
  TS_CHECK_VALUE(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ",
                 py(p));
}
std::string DropoutBase::extra_repr() const { return "p=" + py(p) + ", inplace=" + py(inplace); }
Tensor DropoutBase::placed(const Tensor& input, Tensor result) const {
  return inplace && !result.is_same(input) ? Tensor(op::copy_(input, result)) : result;
}

Tensor Dropout::forward(const Tensor& x) {
  return Tensor(inplace ? op::dropout_(x, p, is_training()) : op::dropout(x, p, is_training()));
}
Tensor Dropout1d::forward(const Tensor& x) {
  return placed(x, functional::dropout1d(x, p, is_training()));
}
Tensor Dropout2d::forward(const Tensor& x) {
  return placed(x, functional::dropout2d(x, p, is_training()));
}
Tensor Dropout3d::forward(const Tensor& x) {
  return placed(x, functional::dropout3d(x, p, is_training()));
}
// PyTorch's modules of these two never work in place.
Tensor AlphaDropout::forward(const Tensor& x) { return alpha_dropout(x, p, is_training()); }
Tensor FeatureAlphaDropout::forward(const Tensor& x) {
  return feature_alpha_dropout(x, p, is_training());
}

}  // namespace tessera::nn
