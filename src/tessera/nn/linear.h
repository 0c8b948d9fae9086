// Linear layers.
#pragma once
#include "tessera/nn/module.h"

namespace tessera::nn {

// Returns its input.
class Identity : public Module {
 public:
  Tensor forward(const Tensor& input) override { return input; }
};

struct LinearOptions {
  bool bias = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

// x A^T + b.
class Linear : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, const LinearOptions& options = {});
  void reset_parameters();
  Tensor& weight() const { return parameter_at(0); }
  Tensor& bias() const { return parameter_at(1); }  // undefined without one
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t in_features, out_features;
};

// A Linear that quantization leaves alone: what attention puts at its end.
class NonDynamicallyQuantizableLinear : public Linear {
 public:
  using Linear::Linear;
};

// x1^T A x2 + b.
class Bilinear : public Module {
 public:
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features,
           const LinearOptions& options = {});
  void reset_parameters();
  Tensor& weight() const { return parameter_at(0); }
  Tensor& bias() const { return parameter_at(1); }
  Tensor forward(const Tensor& input1, const Tensor& input2);
  Tensor operator()(const Tensor& input1, const Tensor& input2) { return forward(input1, input2); }
  std::string extra_repr() const override;

  int64_t in1_features, in2_features, out_features;
};

}  // namespace tessera::nn
