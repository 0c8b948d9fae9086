// Indices of kernels: read as int64, and checked before anything is written.
#pragma once
#include <atomic>

#include "kernels.h"
#include "points.h"

namespace tessera::cpu {

// How a wrong index is worded; the numbers are those of ops/index/layout.h.
enum class IndexError : int64_t {
  kIndex,      // index 5 is out of bounds for dimension 0 with size 3
  kGather,     // the same, as RuntimeError; negative ones are wrong too
  kSelect,     // index out of range in self; negative ones are wrong too
  kIndexCopy,  // index_copy_(): index 5 is ...; negative ones are wrong too
  kTake,       // out of range: tried to access index 5 on a tensor of 3 elements.
  kNone,       // not checked: the caller knows
};

inline bool negative_counts(IndexError e) {
  return e == IndexError::kIndex || e == IndexError::kTake || e == IndexError::kNone;
}

// An index tensor of int64 or int32, tile by tile.
class IndexReader {
 public:
  explicit IndexReader(const KernelTensor& t) : t_(t), reader_(t) {}
  static constexpr int64_t kTile = 512;
  // Points [first, first + n) as int64, at most kTile of them; `room` holds as many.
  const int64_t* tile(int64_t first, int64_t n, int64_t* room) const;
  int64_t at(int64_t i) const;

 private:
  const KernelTensor& t_;
  TileReader reader_;
};

// Wrong indices met by several threads while they read: the first of them is reported.
class WrongIndex {
 public:
  WrongIndex(int64_t size, IndexError error)
      : low_(negative_counts(error) ? -size : 0), size_(size), error_(error) {}
  // Are all n of them right? Notes the position of the first that is not.
  bool fits(const int64_t* v, int64_t n, int64_t position);
  Status status(const KernelTensor& index, int dim) const;

 private:
  int64_t low_, size_;
  IndexError error_;
  std::atomic<int64_t> first_{INT64_MAX};
};

Status check_index_dtype(const KernelTensor& index);
// Every element within [0, size), or [-size, size) where negative ones count from the end.
Status check_indices(const KernelTensor& index, int dim, int64_t size, IndexError error);

}  // namespace tessera::cpu
