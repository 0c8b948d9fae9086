#include "index_range.h"

#include <algorithm>
#include <atomic>

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

Status check_indices(const KernelTensor& index, int dim, int64_t size, IndexError error) {
  if (index.dtype != DType::kInt64 && index.dtype != DType::kInt32)
    return fail(Code::kUnsupported, "an index must be int32 or int64, not %s",
                dtype_name(index.dtype));
  if (error == IndexError::kNone) return {};
  const IndexReader reader(index);
  const int64_t low = negative_counts(error) ? -size : 0;
  std::atomic<int64_t> wrong{index.numel};
  parallel_for(0, index.numel, 1 << 15, [&](int64_t b, int64_t e) {
    int64_t room[kTile];
    for (int64_t i = b; i < e; i += kTile) {
      const int64_t n = std::min(kTile, e - i);
      const int64_t* v = reader.tile(i, n, room);
      bool bad = false;
      for (int64_t k = 0; k < n; ++k) bad |= (v[k] < low) | (v[k] >= size);
      if (!bad) continue;
      int64_t k = 0;
      while (v[k] >= low && v[k] < size) ++k;
      int64_t before = wrong.load(std::memory_order_relaxed);
      while (i + k < before && !wrong.compare_exchange_weak(before, i + k)) {
      }
      return;
    }
  });
  const int64_t first = wrong.load(std::memory_order_relaxed);
  if (first == index.numel) return {};
  return report(reader.at(first), dim, size, error);
}

}  // namespace tessera::cpu
