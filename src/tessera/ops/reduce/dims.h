// What gradients of reductions share.
#pragma once
#include <algorithm>

#include "tessera/gen/view.h"
#include "tessera/ops/call.h"

namespace tessera {

// The dimensions that argument `arg` of a call on a tensor of this shape reduced.
inline Dims dims_of(const Backward& b, int arg, int ndim) {
  Dims dims;
  if (!b.has(arg)) return dims;
  if (b.args[arg].is_scalar())
    dims.push_back(b.integer(arg));
  else
    dims = b.ints(arg);
  for (int64_t& d : dims) d = wrap_dim(d, ndim);
  std::sort(dims.begin(), dims.end());
  return dims;
}

// A result, or its gradient, with ones in place of the reduced dimensions: it broadcasts against
// what was reduced. No dimensions mean all.
inline TensorBase with_reduced_dims(const TensorBase& t, const Dims& dims, bool kept,
                                    const Dims& shape) {
  if (kept || dims.empty() || shape.ndim() == 0) return t;
  TensorBase out = t;
  for (int64_t d : dims) out = op::unsqueeze(out, d);
  return out;
}

// How many elements of a tensor of this shape went into each result.
inline int64_t reduced_count(const Dims& dims, const Dims& shape) {
  int64_t n = 1;
  if (shape.ndim() == 0) return 1;
  if (dims.empty())
    for (int64_t d : shape) n *= d;
  for (int64_t d : dims) n *= shape[static_cast<size_t>(d)];
  return n;
}

}  // namespace tessera
