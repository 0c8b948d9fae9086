// nn::utils: gradients kept small, parameters as one vector.
#pragma once
#include <vector>

#include "tessera/face/tensor.h"

namespace tessera::nn::utils {

struct ClipOptions {
  double norm_type = 2.0;
  bool error_if_nonfinite = false;
};
// Scales all gradients, in place, so that their norm is at most max_norm; returns the norm before.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       ClipOptions options = {});
// The norm of all tensors as if they were one vector.
Tensor get_total_norm(const std::vector<Tensor>& tensors, ClipOptions options = {});
// Keeps every gradient's elements between -clip_value and clip_value, in place.
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

// All parameters, one after another, and back.
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters);

}  // namespace tessera::nn::utils
