#include "tessera/autograd/copy_slices.h"

#include "tessera/gen/copy.h"

namespace tessera::autograd {

CopySlices::CopySlices(const TensorBase& base, ViewRecipe view, Ref<Node> write)
    : sizes_(base.sizes()),
      strides_(base.strides()),
      dtype_(base.dtype()),
      device_(base.device()),
      view_(std::move(view)),
      write_(std::move(write)) {
  // Edge 0 is the base's old history, the others are the write's other inputs.
  next.push_back(gradient_edge(base));
  for (size_t i = 1; i < write_->next.size(); ++i) next.push_back(write_->next[i]);
}

Grads CopySlices::apply(Grads&& grads) {
  // By operators, so that a second derivative finds its way through.
  TensorBase grad = new_empty_strided(sizes_, strides_, dtype_, device_);
  op::copy_(grad, grads[0], false);
  TensorBase piece = view_.apply(grad);
  Grads into;
  into.push_back(op::clone(piece));
  Grads inner = write_->apply(std::move(into));
  Grads out(next.size());
  if (!inner.empty() && inner[0].defined())
    op::copy_(piece, inner[0], false);
  else
    op::zero_(piece);
  out[0] = grad;
  for (size_t i = 1; i < out.size() && i < inner.size(); ++i) out[i] = inner[i];
  return out;
}

}  // namespace tessera::autograd
