// Filling parameters before training: PyTorch's draws in PyTorch's order. All work in place, keep
// no graph, and return the tensor they were given.
#pragma once
#include <string_view>
#include <utility>

#include "tessera/face/tensor.h"

namespace tessera::nn::init {

// The factor by which a nonlinearity's layer scales its weights; param is leaky_relu's slope.
double calculate_gain(std::string_view nonlinearity, double param = 0.01);
// Inputs and outputs of one element of a layer with such weights.
std::pair<int64_t, int64_t> calculate_fan_in_and_fan_out(const TensorBase& t);

using Generator = Mt19937Generator;
Tensor uniform_(Tensor t, double a = 0.0, double b = 1.0, Generator* generator = nullptr);
Tensor normal_(Tensor t, double mean = 0.0, double std = 1.0, Generator* generator = nullptr);
Tensor trunc_normal_(Tensor t, double mean = 0.0, double std = 1.0, double a = -2.0, double b = 2.0,
                     Generator* generator = nullptr);
Tensor constant_(Tensor t, double value);
Tensor ones_(Tensor t);
Tensor zeros_(Tensor t);
Tensor eye_(Tensor t);
Tensor dirac_(Tensor t, int64_t groups = 1);
Tensor xavier_uniform_(Tensor t, double gain = 1.0, Generator* generator = nullptr);
Tensor xavier_normal_(Tensor t, double gain = 1.0, Generator* generator = nullptr);

struct KaimingOptions {
  double a = 0;
  std::string_view mode = "fan_in";
  std::string_view nonlinearity = "leaky_relu";
  Generator* generator = nullptr;
};
Tensor kaiming_uniform_(Tensor t, const KaimingOptions& options = {});
Tensor kaiming_normal_(Tensor t, const KaimingOptions& options = {});
Tensor orthogonal_(Tensor t, double gain = 1.0, Generator* generator = nullptr);
Tensor sparse_(Tensor t, double sparsity, double std = 0.01, Generator* generator = nullptr);

}  // namespace tessera::nn::init
