#include "support/gradcheck.h"

namespace tessera::test {

namespace {

double weighted_sum(const Tensor& t) {
  double total = 0;
  std::vector<double> v = values(t), w = values(sample(t.sizes(), DType::kFloat64, {}, 99));
  for (size_t i = 0; i < v.size(); ++i) total += v[i] * w[i];
  return total;
}

// `t` with one logical element moved, in the same layout.
Tensor moved(const Tensor& t, int64_t element, double by) {
  Tensor copy(new_empty_strided(t.sizes(), t.strides(), t.dtype(), Device{}));
  std::vector<double> v = values(t);
  v[static_cast<size_t>(element)] += by;
  Dims index(t.sizes().size());
  for (double x : v) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * t.strides()[d];
    store_element(copy.raw() + at * 8, DType::kFloat64, x);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < t.sizes()[d]) break;
      index[d] = 0;
    }
  }
  return copy;
}

}  // namespace

::testing::AssertionResult gradcheck(const Function& f, const std::vector<Tensor>& inputs) {
  constexpr double kStep = 1e-5;
  std::vector<Tensor> leaves;
  for (const Tensor& t : inputs) {
    bool differentiable = is_floating(t.dtype());
    leaves.push_back(differentiable && t.numel() ? moved(t, 0, 0) : t.clone());
    if (differentiable) leaves.back().requires_grad_();
  }
  Tensor result = f(leaves);
  if (!result.requires_grad()) return ::testing::AssertionFailure() << "no gradient was recorded";
  result.backward(sample(result.sizes(), DType::kFloat64, {}, 99));
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!is_floating(inputs[k].dtype())) continue;
    Tensor grad = leaves[k].grad();
    if (!grad.defined())
      return ::testing::AssertionFailure() << "input " << k << " got no gradient";
    if (!(grad.sizes() == inputs[k].sizes()))
      return ::testing::AssertionFailure()
             << "input " << k << ": gradient of shape " << cat(grad.sizes());
    std::vector<double> by_backward = values(grad), by_difference;
    NoGrad off;
    for (int64_t i = 0; i < inputs[k].numel(); ++i) {
      std::vector<Tensor> at = inputs;
      at[k] = moved(inputs[k], i, kStep);
      double above = weighted_sum(f(at));
      at[k] = moved(inputs[k], i, -kStep);
      by_difference.push_back((above - weighted_sum(f(at))) / (2 * kStep));
    }
    auto same = close(by_backward, by_difference, 1e-6);
    if (!same) return ::testing::AssertionFailure() << "input " << k << ": " << same.message();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tessera::test
