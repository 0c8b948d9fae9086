// The gradient of what was picked along a dimension, shared by max, sort, topk and their like.
#pragma once
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"

namespace tessera {

// Each gradient goes to where its element came from in argument 0; the others get zero.
inline TensorBase to_where_picked(const Backward& b, const TensorBase& grad,
                                  const TensorBase& indices, int64_t dim, bool keepdim) {
  const Dims& shape = b.shape(0);
  if (shape.ndim() == 0) return op::reshape(grad, shape.span());
  dim = wrap_dim(dim, shape.ndim());
  TensorBase zeros = op::new_zeros(grad, shape.span());
  if (keepdim) return op::scatter(zeros, dim, indices, grad);
  return op::scatter(zeros, dim, op::unsqueeze(indices, dim), op::unsqueeze(grad, dim));
}

// The shape of results with one value for each line along `dim`.
inline Dims shape_without(const Dims& shape, int64_t dim, bool keepdim) {
  Dims out = shape;
  if (out.empty()) return out;
  if (keepdim)
    out[static_cast<size_t>(dim)] = 1;
  else
    out.erase(static_cast<size_t>(dim));
  return out;
}

}  // namespace tessera
