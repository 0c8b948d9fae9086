// scatter_reduce and index_reduce: the same reductions over elements that land in one place, once
// with an index for every element and once with one for every position of a dimension.
#pragma once
#include "tessera/ops/index/layout.h"

namespace tessera {

// How elements of the source relate to elements of self.
struct Spread {
  int64_t dim;
  TensorBase index;
  // From self's shape to the source's: what stands where each source element lands.
  TensorBase (*read)(const TensorBase& t, int64_t dim, const TensorBase& index);
  // t with source added where its elements land.
  TensorBase (*add)(const TensorBase& t, int64_t dim, const TensorBase& index,
                    const TensorBase& source);
  // t with zero where any source element lands.
  TensorBase (*clear)(const TensorBase& t, int64_t dim, const TensorBase& index);
  // The whole reduction.
  TensorBase (*reduce)(const TensorBase& t, int64_t dim, const TensorBase& index,
                       const TensorBase& source, std::string_view how, bool include_self);
  // Message for second gradients of products with several zeros.
  const char* no_second_gradient;
};

// Divides the sums of "mean" by how many elements are in each.
void divide_by_counts(const TensorBase& out, const Spread& spread, const TensorBase& source,
                      bool include_self);

// Gradients of self (argument 0) and source (argument 3); self, source and the result are saved.
void reduce_along_backward(Backward& b, const Spread& spread, std::string_view how,
                           bool include_self);

}  // namespace tessera
