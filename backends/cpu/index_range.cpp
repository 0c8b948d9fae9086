#include "index_range.h"

#include <algorithm>

#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kTile = IndexReader::kTile;

Status report(int64_t value, int dim_, int64_t size_, IndexError error) {
  const long v = static_cast<long>(value), size = static_cast<long>(size_);
  switch (error) {
    case IndexError::kGather:
      return fail(Code::kRefused, "index %ld is out of bounds for dimension %d with size %ld", v,
                  dim_, size);
    case IndexError::kSelect:
      return fail(Code::kInvalid,
                  "index out of range in self: index %ld in dimension %d with size %ld", v, dim_,
                  size);
    case IndexError::kIndexCopy:
      return fail(Code::kInvalid,
                  "index_copy_(): index %ld is out of bounds for dimension %d with size %ld", v,
                  dim_, size);
    case IndexError::kTake:
      return fail(Code::kInvalid,
                  "out of range: tried to access index %ld on a tensor of %ld elements.", v, size);
    default:
      return fail(Code::kInvalid, "index %ld is out of bounds for dimension %d with size %ld", v,
                  dim_, size);
  }
}

}  // namespace

const int64_t* IndexReader::tile(int64_t first, int64_t n, int64_t* room) const {
  if (t_.dtype == DType::kInt64) return static_cast<const int64_t*>(reader_.tile(first, n, room));
  int32_t narrow[kTile];
  const int32_t* from = static_cast<const int32_t*>(reader_.tile(first, n, narrow));
  for (int64_t k = 0; k < n; ++k) room[k] = from[k];
  return room;
}

int64_t IndexReader::at(int64_t i) const {
  int64_t room[1];
  return *tile(i, 1, room);
}

bool WrongIndex::fits(const int64_t* v, int64_t n, int64_t position) {
  if (error_ == IndexError::kNone) return true;
  // Counted from the lowest one, as unsigned numbers: too low ones are too large then.
  const uint64_t low = static_cast<uint64_t>(low_);
  uint64_t most = 0;
  for (int64_t k = 0; k < n; ++k) most = std::max(most, static_cast<uint64_t>(v[k]) - low);
  if (n == 0 || most < static_cast<uint64_t>(size_) - low) return true;
  int64_t k = 0;
  while (v[k] >= low_ && v[k] < size_) ++k;
  int64_t before = first_.load(std::memory_order_relaxed);
  while (position + k < before && !first_.compare_exchange_weak(before, position + k)) {
  }
  return false;
}

Status WrongIndex::status(const KernelTensor& index, int dim) const {
  const int64_t first = first_.load(std::memory_order_relaxed);
  if (first == INT64_MAX) return {};
  return report(IndexReader(index).at(first), dim, size_, error_);
}

Status check_index_dtype(const KernelTensor& index) {
  if (index.dtype == DType::kInt64 || index.dtype == DType::kInt32) return {};
  return fail(Code::kUnsupported, "an index must be int32 or int64, not %s",
              dtype_name(index.dtype));
}

Status check_indices(const KernelTensor& index, int dim, int64_t size, IndexError error) {
  Status s = check_index_dtype(index);
  if (!s.ok() || error == IndexError::kNone) return s;
  const IndexReader reader(index);
  WrongIndex wrong(size, error);
  parallel_for(0, index.numel, 1 << 15, [&](int64_t b, int64_t e) {
    int64_t room[kTile];
    for (int64_t i = b; i < e; i += kTile) {
      const int64_t n = std::min(kTile, e - i);
      if (!wrong.fits(reader.tile(i, n, room), n, i)) return;
    }
  });
  return wrong.status(index, dim);
}

}  // namespace tessera::cpu
