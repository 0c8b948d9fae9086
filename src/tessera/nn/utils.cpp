#include "tessera/nn/utils.h"

#include <cmath>

#include "tessera/face/set_data.h"
#include "tessera/nn/text.h"

namespace tessera::nn::utils {

using autograd::GradMode;

namespace {
std::vector<Tensor> grads_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> grads;
  for (const Tensor& p : parameters)
    if (Tensor grad = p.grad(); grad.defined()) grads.push_back(grad);
  return grads;
}
void check_device(const Tensor& p, const std::vector<Tensor>& parameters) {
  TS_CHECK_TYPE(p.device() == parameters[0].device(),
                "Found two parameters on different devices, this is currently not supported.");
}
}  // namespace

Tensor get_total_norm(const std::vector<Tensor>& tensors, ClipOptions o) {
  GradMode off(false);
  if (tensors.empty()) return Tensor(op::zeros({}));
  std::vector<TensorBase> norms;
  for (const Tensor& t : tensors)
    norms.push_back(Tensor(op::linalg_vector_norm(t, o.norm_type)).to(tensors[0].device()));
  Tensor total(op::linalg_vector_norm(op::stack(norms), o.norm_type));
  TS_CHECK(!o.error_if_nonfinite || std::isfinite(total.item()), "The total norm of order ",
           py(o.norm_type),
           " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable "
           "this error and scale the gradients by the non-finite norm anyway, set "
           "`error_if_nonfinite=False`");
  return total;
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, ClipOptions o) {
  GradMode off(false);
  std::vector<Tensor> grads = grads_of(parameters);
  Tensor total = get_total_norm(grads, o);
  if (grads.empty()) return total;
  // Never more than 1; a product rather than a question, so that nobody waits for the norm.
  Tensor factor(op::clamp(max_norm / (total + 1e-6), Value(), 1.0));
  for (const Tensor& grad : grads) op::mul_(grad, factor.to(grad.device()));
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  GradMode off(false);
  for (const Tensor& grad : grads_of(parameters)) op::clamp_(grad, -clip_value, clip_value);
}

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<TensorBase> parts;
  for (const Tensor& p : parameters) {
    check_device(p, parameters);
    parts.push_back(p.view(-1));
  }
  return Tensor(op::cat(parts));
}

void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters) {
  int64_t at = 0;
  for (const Tensor& p : parameters) {
    check_device(p, parameters);
    set_data(p, vec.detach().slice(0, at, at + p.numel()).view(p.sizes()));
    at += p.numel();
  }
}

}  // namespace tessera::nn::utils
