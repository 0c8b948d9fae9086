#include "tessera/fuse/rows.h"

namespace tessera::fuse {

namespace {

// Dimensions [first, last) as one; false where no single stride steps through them.
bool as_one(const Dims& shape, const Dims& strides, int first, int last, int64_t* stride) {
  int64_t next = -1;  // of the dimension before, if all are one
  *stride = 0;
  for (int d = last - 1; d >= first; --d) {
    if (shape[d] == 1) continue;
    if (next < 0)
      *stride = strides[d];
    else if (strides[d] != next)
      return false;
    if (strides[d] < 0) return false;
    next = strides[d] * shape[d];
  }
  return true;
}

void merge(Dims& sizes, Dims& strides) {
  size_t n = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    if (n > 0 && strides[n - 1] == strides[d] * sizes[d]) {
      sizes[n - 1] *= sizes[d];
      strides[n - 1] = strides[d];
    } else {
      sizes[n] = sizes[d];
      strides[n] = strides[d];
      ++n;
    }
  }
  sizes.resize(n);
  strides.resize(n);
}

}  // namespace

bool row_strides(const PendingOperand& o, const Dims& shape, int64_t rows, int64_t n, int64_t* down,
                 int64_t* along) {
  if (o.dense) {
    *down = n;
    *along = 1;
    return true;
  }
  int d = shape.ndim();
  int64_t in_row = 1;
  while (d > 0 && in_row < n) in_row *= shape[--d];
  return in_row == n && as_one(shape, o.strides, d, shape.ndim(), along) &&
         as_one(shape, o.strides, 0, d, down) && rows > 0;
}

int64_t rows_after(const PendingKernel& call) {
  int64_t numel = 1;
  for (int64_t size : call.outputs[static_cast<size_t>(call.rows.out)].shape) numel *= size;
  return numel / call.rows.rows;
}

Reduction::Reduction(const ReduceBody& body, DType in, const Dims& sizes, const Dims& strides,
                     std::span<const int64_t> dims, DType out) {
  size_t next = 0;
  int64_t kept = 1, reduced = 1;
  for (int d = 0; d < sizes.ndim(); ++d) {
    const bool goes = next < dims.size() && dims[next] == d;
    next += goes;
    (goes ? reduced : kept) *= sizes[d];
    (goes ? reduced_sizes : kept_sizes).push_back(sizes[d]);
    (goes ? reduced_strides : kept_strides).push_back(strides[d]);
  }
  merge(kept_sizes, kept_strides);
  merge(reduced_sizes, reduced_strides);
  RegClass cls = reg_class(out);
  if (cls == RegClass::kB8 && !body.loops[0][static_cast<int>(cls)].run) cls = RegClass::kI64;
  program = {&body,
             cls,
             kept_sizes.ndim(),
             kept_sizes.data(),
             reduced_sizes.ndim(),
             reduced_sizes.data(),
             kept,
             reduced,
             nullptr,
             in,
             kept_strides.data(),
             reduced_strides.data(),
             nullptr,
             out};
}

}  // namespace tessera::fuse
