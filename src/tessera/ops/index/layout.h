// What the records of indexing share.
#pragma once
#include <string_view>

#include "tessera/ops/call.h"

namespace tessera {

// How kernels word a wrong index; the numbers are those of the backends.
enum class IndexError : int64_t { kIndex, kGather, kSelect, kIndexCopy, kTake };
// What becomes of an element that is written.
enum class Combine : int64_t { kAssign, kAdd, kMul, kMin, kMax };

// A tensor of int64 indices on the device of `self`.
TensorBase as_index(const TensorBase& index, const TensorBase& self);
// A 0-d tensor as one of one element; others as they are.
TensorBase at_least_1d(const TensorBase& t);
// Writes `values`, which broadcast, at the positions of a dimension that a vector names.
void write_along(const TensorBase& out, int dim, const TensorBase& index, const TensorBase& values,
                 Combine combine, IndexError error);
// The value that a reduction named by `reduce` begins with: what include_self=False puts at the
// positions that are reduced.
Scalar neutral_element(Combine combine, DType dtype);
// "prod" -> kMul, ...; kAdd also for "mean".
Combine combine_of(std::string_view reduce);
// The numbers of a 0-d tensor of `dtype`: a number that a tensor is filled with.
TensorBase number_like(Scalar value, const TensorBase& like);

// What index_add and index_reduce ask of (self, dim, index, source); the wrapped dimension.
int64_t check_index_source(const Call& call, const char* name);

}  // namespace tessera
