#include "tessera/ops/index/layout.h"
#include "tessera/ops/in_dtype.h"

#include <cmath>
#include <limits>

#include "tessera/base/deterministic.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"

namespace tessera {

TensorBase as_index(const TensorBase& index, const TensorBase& self) {
  TensorBase t = index;
  TS_CHECK(t.device() == self.device() || t.device().is_cpu(),
           "indices should be either on cpu or on the same device as the indexed tensor (",
           self.device(), ")");
  if (!(t.device() == self.device())) t = op::_to_device(t, self.device());
  t = in_dtype(t, DType::kInt64);
  return t;
}

TensorBase at_least_1d(const TensorBase& t) {
  return t.dim() ? t : alias(t, {1}, {1}, t.storage_offset());
}

void write_along(const TensorBase& out_, int dim, const TensorBase& index, const TensorBase& values,
                 Combine combine, IndexError error) {
  TensorBase out = at_least_1d(out_);
  TensorBase places = at_least_1d(as_index(index, out));
  Dims shape = out.sizes();
  shape[static_cast<size_t>(dim)] = places.numel();
  TensorBase from = at_least_1d(values);
  if (!(from.sizes() == shape))
    from = alias(from, shape, broadcast_strides(from.sizes(), from.strides(), shape),
                 from.storage_offset());
  TensorBase in[] = {from, places};
  int64_t ints[] = {
      dim, 1, static_cast<int64_t>(error), static_cast<int64_t>(combine), dim, deterministic()};
  launch("index_write", {&out, 1}, in, ints);
}

Combine combine_of(std::string_view reduce) {
  if (reduce == "prod") return Combine::kMul;
  if (reduce == "amax") return Combine::kMax;
  if (reduce == "amin") return Combine::kMin;
  return Combine::kAdd;
}

Scalar neutral_element(Combine combine, DType dtype) {
  if (combine == Combine::kAdd) return Scalar(0);
  if (combine == Combine::kMul) return Scalar(1);
  bool lowest = combine == Combine::kMax;
  if (is_floating(dtype)) {
    double inf = std::numeric_limits<double>::infinity();
    return Scalar(lowest ? -inf : inf);
  }
  if (dtype == DType::kBool) return Scalar(!lowest);
  if (dtype == DType::kUInt8) return Scalar(lowest ? 0 : 255);
  int bits = static_cast<int>(itemsize(dtype)) * 8;
  int64_t top = bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1;
  return Scalar(lowest ? -top - 1 : top);
}

TensorBase number_like(Scalar value, const TensorBase& like) {
  return op::full({}, value, like.dtype(), like.device());
}

int64_t check_index_source(const Call& c, const char* name) {
  const TensorBase &self = c.tensor(0), &index = c.tensor(2), &source = c.tensor(3);
  check_same_device(c.op, c.args);
  int dim = wrap_dim(c.integer(1), self.dim());
  TS_CHECK_INDEX(index.dim() <= 1, name,
                 "_(): Index is supposed to be a vector, but got dim: ", index.dim());
  TS_CHECK(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32, name,
           "_(): Expected dtype int32/int64 for index but got: ", index.dtype());
  TS_CHECK(self.dtype() == source.dtype(), name, "_(): self (", self.dtype(), ") and source (",
           source.dtype(), ") must have the same scalar type");
  TS_CHECK(dim == 0 || dim < source.dim(), name, "_(): Indexing dim ", dim,
           " is out of bounds of the source tensor with dim ", source.dim());
  TS_CHECK(index.numel() == (source.dim() ? source.sizes()[dim] : 1), name,
           "_(): Number of indices (", index.numel(), ") should be equal to source.size(dim): (",
           source.dim() ? source.sizes()[dim] : 1, "), for dim: ", dim);
  Dims around = self.sizes(), given = source.sizes();
  if (!around.empty()) around.erase(static_cast<size_t>(dim));
  if (!given.empty()) given.erase(static_cast<size_t>(dim));
  TS_CHECK(around == given,
           "source tensor shape must match self tensor shape, excluding the specified dimension. "
           "Got self.shape = ",
           self.sizes(), " source.shape = ", source.sizes());
  return dim;
}

}  // namespace tessera
